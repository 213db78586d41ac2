"""The next edit: its request, its answer, and the reasons for having none."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from caret_ls.frames import Frame, RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.next_edit.edit_outcomes import EditOutcomes
from caret_ls.next_edit.next_edits import EditRequest, EditState, NextEdit, NextEdits
from caret_ls.next_edit.sent_lines import EditorDiagnostic, LineEdit
from caret_ls.outcome_tracker import EditorOutcome, ShownSuggestion
from caret_ls.settings import Settings
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import SignedOutReason
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile
from tests.fakes.polling import wait_until
from tests.unit.caret_ls import provider_harness
from tests.unit.caret_ls.provider_harness import URI

TEXT = "def total(items):\n    return sum(items)\n\n\nprint(total([1]))\n"
RENAMED = "def total_of(items):\n    return sum(items)\n\n\nprint(total([1]))\n"
EDIT: dict[str, Any] = {"start_line": 4, "end_line": 5, "text": "print(total_of([1]))\n"}


class Harness(provider_harness.Harness):
    """A file in which the user has renamed a function."""

    def __init__(
        self,
        *,
        pause_s: float = 0.0,
        modes: tuple[str, ...] = ("edit",),
        has_edit: bool = True,
    ) -> None:
        super().__init__()
        self.open(TEXT)
        self.edit_settings = Settings()
        self.excluded: tuple[str, ...] = ()
        self.edit_reports: list[EditorOutcome] = []
        self.applied: list[tuple[str, ShownSuggestion]] = []
        self.policies.update({"type": "policy", "repository": "", "modes": list(modes)})
        state = EditState(
            self.files,
            self.board,
            self.policies,
            self.client,
            build_request_context=lambda _: RequestContext(),
            excluded_globs=lambda _: self.excluded,
            get_settings=lambda: self.edit_settings,
            now_s=self.clock.monotonic_s,
            new_id=lambda: str(len(self.gateway.requests) + 1),
            on_applied=lambda uri, applied: self.applied.append((uri, applied)),
        )
        self.next_edits = NextEdits(
            state, self.gateway, EditOutcomes(self.edit_reports.append), pause_s=pause_s
        )
        if has_edit:
            self.change(Position(0, 9), "_of")

    @property
    def file(self) -> OpenFile:
        file = self.files.get(URI)
        assert file is not None
        return file

    def change(self, at: Position, text: str) -> None:
        self.next_edits.on_change(self.file, self.file.change(at, at, text))

    def request(self, **fields: Any) -> "asyncio.Task[NextEdit | SkipReason]":
        request = EditRequest(URI, Position(0, 12), **fields)
        return asyncio.create_task(self.next_edits.suggest(request))

    def answer(self, edit: object, *, finish_reason: str = "stop") -> None:
        """Set the gateway's response to the next request; None: a response without an edit."""
        self.gateway.ready.append([done_frame(edit, finish_reason=finish_reason)])


def done_frame(edit: object, *, finish_reason: str) -> Frame:
    meta = {"request_id": "r1"}
    frame = {"type": "done", "finish_reason": finish_reason, "meta": meta}
    return frame if edit is None else frame | {"edit": edit}


async def test_an_edit_is_requested_with_the_recent_edits_and_the_diagnostics() -> None:
    harness = Harness()
    harness.answer(EDIT)

    result = await harness.request(diagnostics=(EditorDiagnostic(4, "error", "not defined"),))

    expected = LineEdit(
        Position(4, 0), Position(5, 0), "print(total([1]))\n", "print(total_of([1]))\n"
    )
    assert result == NextEdit(
        id="1",
        request_id="r1",
        uri=URI,
        version=0,
        edit=expected,
        sent_s=harness.clock.now_s,
    )
    (frame,) = harness.gateway.requests
    assert (frame["type"], frame["mode"], frame["trigger"]) == ("complete", "edit", "automatic")
    assert frame["prefix"] + frame["suffix"] == RENAMED
    assert frame["diagnostics"] == [{"line": 4, "severity": "error", "message": "not defined"}]
    assert frame["recent_edits"] == [
        {
            "path": "a.py",
            "start_line": 0,
            "removed": "def total(items):\n",
            "added": "def total_of(items):\n",
        }
    ]


@pytest.mark.parametrize(
    ("edit", "finish_reason"),
    [
        (None, "stop"),
        (None, "filtered"),
        (EDIT | {"start_line": 3, "end_line": 2}, "stop"),
        (EDIT | {"end_line": 99}, "stop"),
        (EDIT | {"start_line": True}, "stop"),
        (EDIT | {"text": None}, "stop"),
        ({}, "stop"),
        ("print", "stop"),
        (EDIT | {"text": "print(total([1]))\n"}, "stop"),  # no change
    ],
)
async def test_an_answer_without_a_usable_edit_suggests_nothing(
    edit: object, finish_reason: str
) -> None:
    harness = Harness()
    harness.answer(edit, finish_reason=finish_reason)

    assert await harness.request() is SkipReason.NOTHING_TO_SUGGEST


async def test_a_keystroke_cancels_the_request() -> None:
    harness = Harness()
    pending_request = harness.request()
    await harness.wait_for_request(1)

    harness.change(Position(0, 12), "x")

    assert await pending_request is SkipReason.NEWER_KEYSTROKE
    assert harness.gateway.cancelled == ["1"]


async def test_a_keystroke_in_the_pause_leaves_no_request() -> None:
    harness = Harness(pause_s=60.0)
    pending_request = harness.request()
    await asyncio.sleep(0)  # the pause begins

    harness.change(Position(0, 12), "x")

    assert await pending_request is SkipReason.NEWER_KEYSTROKE
    assert harness.gateway.requests == []


async def test_a_cancelled_call_cancels_its_request() -> None:
    harness = Harness()
    pending_request = harness.request()
    await harness.wait_for_request(1)

    pending_request.cancel()
    await asyncio.wait({pending_request})
    await wait_until(lambda: bool(harness.gateway.cancelled))

    assert harness.gateway.cancelled == ["1"]


async def test_a_newer_call_replaces_an_older_one() -> None:
    harness = Harness()
    first = harness.request()
    await harness.wait_for_request(1)
    harness.answer(EDIT)

    second = harness.request()

    assert await first is SkipReason.NEWER_KEYSTROKE
    assert isinstance(await second, NextEdit)


async def test_after_an_accepted_edit_there_is_no_pause() -> None:
    harness = Harness(pause_s=60.0)
    harness.answer(EDIT)

    assert isinstance(await harness.request(is_follow_up=True), NextEdit)


async def test_a_dismissed_edit_is_not_requested_again_for_the_same_text() -> None:
    harness = Harness()
    harness.answer(EDIT)
    await harness.request()
    harness.next_edits.on_displayed("1")
    harness.next_edits.on_dismissed("1")

    assert await harness.request() is SkipReason.NOTHING_TO_SUGGEST
    assert len(harness.gateway.requests) == 1


async def test_an_edit_that_did_not_reach_the_screen_is_returned_again() -> None:
    harness = Harness()
    harness.answer(EDIT)
    first = await harness.request()
    assert isinstance(first, NextEdit)

    assert await harness.request() == replace(first, sent_s=None)
    assert len(harness.gateway.requests) == 1


async def test_without_a_recent_edit_nothing_is_requested() -> None:
    harness = Harness(has_edit=False)

    assert await harness.request() is SkipReason.NOTHING_TO_SUGGEST
    assert harness.gateway.requests == []


async def test_edits_of_excluded_files_are_neither_recorded_nor_sent() -> None:
    harness = Harness()
    secret = harness.files.open("file:///nowhere/secret.py", "python", "x = 1\n")
    later = harness.files.open("file:///nowhere/later.py", "python", "x = 1\n")
    harness.excluded = ("secret.py",)
    for file in (secret, later):
        harness.next_edits.on_change(file, file.change(Position(0, 5), Position(0, 5), "2"))
    harness.excluded = ("later.py",)
    harness.answer(EDIT)

    await harness.request()

    assert [edit["path"] for edit in harness.gateway.requests[0]["recent_edits"]] == ["a.py"]


async def test_skip_reasons_are_reported_without_a_request() -> None:
    closed, off, paused, signed_out, offline, language, excluded, selected = (
        Harness() for _ in range(8)
    )
    denied = Harness(modes=("inline",))
    closed.files.close(URI)
    off.edit_settings = Settings(next_edit=False)
    paused.board.set(is_paused=True)
    signed_out.board.set(signed_out_reason=SignedOutReason.NO_KEY)
    offline.board.set(is_connected=False)
    language.edit_settings = Settings(disabled_languages=("python",))
    excluded.excluded = ("*.py",)
    selected.file.has_selection = True
    harnesses = (closed, off, denied, paused, signed_out, offline, language, excluded, selected)

    reasons = [await harness.request() for harness in harnesses]

    assert reasons == [
        SkipReason.FILE_CLOSED,
        SkipReason.EDIT_OFF,
        SkipReason.EDIT_OFF,
        SkipReason.PAUSED,
        SkipReason.SIGNED_OUT,
        SkipReason.OFFLINE,
        SkipReason.LANGUAGE_OFF,
        SkipReason.EXCLUDED,
        SkipReason.SELECTION,
    ]
    assert [harness.gateway.requests for harness in harnesses] == [[]] * len(harnesses)


async def test_edits_are_not_requested_before_the_policy_is_known() -> None:
    harness = Harness()
    harness.policies.update({"type": "policy", "repository": ""})

    assert await harness.request() is SkipReason.EDIT_OFF


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("feature_disabled", SkipReason.EDIT_OFF),
        ("insufficient_scope", SkipReason.EDIT_OFF),
        ("mode_unavailable", SkipReason.EDIT_OFF),
        ("no_pool", SkipReason.NO_MODEL),
        ("offline", SkipReason.OFFLINE),
        ("unknown_mode", SkipReason.REFUSED),
    ],
)
async def test_a_failed_request_is_reported_with_its_reason(code: str, reason: SkipReason) -> None:
    harness = Harness()
    harness.gateway.ready.append([RequestEnded(code)])

    assert await harness.request() is reason


async def test_a_mode_without_a_model_is_not_requested_again() -> None:
    harness = Harness()
    harness.gateway.ready.append([RequestEnded("no_pool")])
    await harness.request()
    harness.change(Position(0, 12), "x")

    assert await harness.request() is SkipReason.EDIT_OFF


async def test_a_language_that_the_gateway_does_not_know_is_omitted() -> None:
    harness = Harness()
    harness.gateway.ready.append([RequestEnded("unknown_language")])
    await harness.request()
    harness.change(Position(0, 12), "x")
    harness.answer(EDIT)
    await harness.request()

    assert [frame["language"] for frame in harness.gateway.requests] == ["python", ""]


async def test_no_request_is_sent_before_the_gateways_retry_time() -> None:
    harness = Harness()
    harness.gateway.ready.append([RequestEnded("rate_limited", retry_after_s=5.0)])
    first = await harness.request()
    harness.change(Position(0, 12), "x")
    before_retry_time = await harness.request()
    harness.clock.now_s += 6.0
    harness.answer(EDIT)
    after_retry_time = await harness.request()

    assert (first, before_retry_time) == (SkipReason.OVERLOADED, SkipReason.OVERLOADED)
    assert isinstance(after_retry_time, NextEdit)


async def test_after_a_spent_budget_the_reason_stays_the_budget() -> None:
    harness = Harness()
    harness.gateway.ready.append([RequestEnded("budget_exceeded")])
    first = await harness.request()
    harness.change(Position(0, 12), "x")
    second = await harness.request()

    assert (first, second) == (SkipReason.OVER_BUDGET, SkipReason.OVER_BUDGET)
    assert len(harness.gateway.requests) == 1


async def test_outcomes_carry_the_id_that_all_gateways_know() -> None:
    harness = Harness()
    harness.answer(EDIT)
    await harness.request()
    harness.clock.now_s += 0.25
    harness.next_edits.on_displayed("1")
    harness.clock.now_s += 1.0

    harness.next_edits.on_accepted("1")
    harness.change(Position(4, 0), "#")

    assert [
        (outcome.event, outcome.request_id, outcome.display_ms) for outcome in harness.edit_reports
    ] == [("shown", "r1", 250), ("accepted", "r1", None)]


async def test_the_text_of_an_accepted_edit_is_tracked_once_the_file_contains_it() -> None:
    harness = Harness()
    harness.answer(EDIT)
    result = await harness.request()
    assert isinstance(result, NextEdit)

    harness.next_edits.on_accepted("1")
    edit = result.edit
    harness.next_edits.on_change(
        harness.file, harness.file.change(edit.start, edit.end, edit.new_text)
    )
    harness.change(Position(4, 0), "#")

    start = harness.file.text.index("#print")
    assert harness.applied == [(URI, ShownSuggestion("1", start, EDIT["text"], request_id="r1"))]


async def test_an_edit_that_the_editor_did_not_apply_is_not_tracked() -> None:
    harness = Harness()
    harness.answer(EDIT)
    await harness.request()

    harness.next_edits.on_accepted("1")
    harness.change(Position(0, 0), "#")

    assert harness.applied == []

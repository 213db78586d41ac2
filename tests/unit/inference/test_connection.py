"""A client's WebSocket connection: each completion ends exactly once, whatever the client does.

`editor.says` sends a frame about a completion. `editor.ends` lists its finish reasons and errors.
"""

import asyncio
import gc
from collections import Counter
from typing import Any

import pytest

from inference.completion.edit import Diagnostic, DiagnosticSeverity, RecentEdit
from inference.completion.incoming_request import UnvalidatedRequest
from inference.completion.response_writer import ClientDisconnected
from inference.gateway.protocol.connection import MAX_CONCURRENT_COMPLETIONS, SupersessionKey
from inference.gateway.protocol.frames import DeltaFrame, DoneFrame, ErrorFrame
from inference.gateway.receive import MAX_FILES, MAX_NAME_CHARS
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.stream_client import open_editor


def _hanging_engine() -> FakeEngine:
    return FakeEngine(chunks_of("b", stop=None), hangs=True)


async def test_a_completion_is_streamed_and_ends_with_done() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")

    assert (editor.text("1"), editor.ends("1")) == ("bc", ["stop"])


async def test_the_fields_of_a_frame_reach_the_request() -> None:
    async with open_editor() as editor:
        files = [{"path": "b.py", "text": "b", "edited_at": 3}]
        repository = {"name": "shop"}
        await editor.says("complete", "1", mode="block", files=files, repository=repository)
        await editor.waits_for_end("1")

    draft = editor.arrivals[0].draft
    assert (draft.mode, draft.prefix) == ("block", "a = ")
    assert (draft.path, draft.repository) == ("1.py", "shop")
    assert [(file.path, file.text, file.edited_at) for file in draft.files] == [("b.py", "b", 3.0)]


async def test_a_completion_has_the_key_of_its_connection() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")

    assert editor.arrivals[0].key_text == "key"


async def test_a_cancel_ends_the_completion_and_its_engine_request() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1")
        await editor.waits(lambda: bool(editor.text("1")))

        await editor.says("cancel", "1")
        await editor.waits_for_end("1")

        assert editor.engine.num_open == 0
    assert editor.ends("1") == ["cancelled"]


async def test_a_cancelled_completion_frees_its_text_without_garbage_collection() -> None:
    async with open_editor(_hanging_engine()) as editor:
        gc.disable()
        try:
            await editor.says("complete", "1", prefix="text of this test only")
            await editor.waits(lambda: bool(editor.text("1")))
            await editor.says("cancel", "1")
            await editor.waits_for_end("1")
            editor.arrivals.clear()

            drafts = [item for item in gc.get_objects() if type(item) is UnvalidatedRequest]
        finally:
            gc.enable()

    assert not [draft for draft in drafts if draft.prefix == "text of this test only"]


@pytest.mark.parametrize("path", ["path_of_this_test_only.py", "planted" * 100_000])
async def test_an_ended_completion_keeps_no_path(path: str) -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1", path=path)
        await editor.waits_for_end("1")

        kept_paths = [item.path for item in gc.get_objects() if type(item) is SupersessionKey]

    assert path not in kept_paths


@pytest.mark.parametrize(
    "names",
    [{"path": "planted" * 100_000}, {"path": "a.py", "repository": {"name": "planted" * 100_000}}],
)
async def test_a_name_that_is_too_long_is_not_kept(names: dict[str, Any]) -> None:
    """The receive stage, which is not part of this test, rejects such a request."""
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1", **names)

        keys = [item for item in gc.get_objects() if type(item) is SupersessionKey]

    assert all(len(name) <= MAX_NAME_CHARS for key in keys for name in (key.path, key.repository))


async def test_only_the_first_files_are_parsed() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1", files=[{"path": "", "text": ""}] * 10_000)
        await editor.waits_for_end("1")

    # The parser keeps one more than allowed, so that validation rejects the request.
    assert len(editor.arrivals[0].draft.files) == MAX_FILES + 1


async def test_a_cancel_directly_after_its_request_ends_the_completion() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1")
        await editor.says("cancel", "1")
        await editor.waits_for_end("1")

    assert editor.ends("1") == ["cancelled"]
    assert len(editor.arrivals) == 1


async def test_a_second_cancel_changes_nothing() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1")
        await editor.says("cancel", "1")
        cancelled_s = editor.clock.monotonic_s()
        editor.clock.pass_s(1.0)
        await editor.says("cancel", "1")
        await editor.waits_for_end("1")

    assert editor.ends("1") == ["cancelled"]
    assert editor.cancel_times_s == [cancelled_s]


@pytest.mark.parametrize("moment", ["never requested", "ended"])
async def test_a_cancel_without_a_completion_is_ignored(moment: str) -> None:
    async with open_editor() as editor:
        if moment == "ended":
            await editor.says("complete", "1")
            await editor.waits_for_end("1")

        frames_before = list(editor.frames)
        await editor.says("cancel", "1")

        assert editor.frames == frames_before


async def test_no_text_follows_a_cancel() -> None:
    engine = FakeEngine(chunks_of(*"abcdefgh"), hangs=True)
    async with open_editor(engine) as editor:
        await editor.says("complete", "1")
        await editor.waits(lambda: bool(editor.text("1")))
        await editor.says("cancel", "1")
        shown_text = editor.text("1")
        await editor.waits_for_end("1")

    assert editor.text("1") == shown_text
    assert isinstance(editor.frames_of("1")[-1], DoneFrame)


async def test_a_newer_request_for_a_path_supersedes_the_older() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1", path="a.py")
        await editor.says("complete", "2", path="a.py")
        await editor.waits_for_end("1")
        await editor.waits(lambda: bool(editor.text("2")))

        assert editor.engine.num_open == 1
    assert (editor.ends("1"), editor.ends("2")) == (["superseded"], [])


async def test_completions_of_one_path_in_two_repositories_run_concurrently() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1", path="a.py", repository={"name": "shop"})
        await editor.says("complete", "2", path="a.py", repository={"name": "docs"})
        await editor.waits(lambda: bool(editor.text("1") and editor.text("2")))

        assert editor.engine.num_open == 2


async def test_completions_of_two_paths_run_concurrently() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1", path="a.py")
        await editor.says("complete", "2", path="b.py")
        await editor.waits(lambda: bool(editor.text("1") and editor.text("2")))

        assert editor.engine.num_open == 2
    assert editor.ends("1") == editor.ends("2") == []


@pytest.mark.parametrize("has_ended", [False, True])
async def test_an_id_can_be_used_only_once(has_ended: bool) -> None:
    async with open_editor(None if has_ended else _hanging_engine()) as editor:
        await editor.says("complete", "1")
        if has_ended:
            await editor.waits_for_end("1")

        await editor.says("complete", "1", path="other.py")

        last_frame = editor.frames_of("1")[-1]
        assert isinstance(last_frame, ErrorFrame)
        assert last_frame.code == "duplicate_id"
        assert len(editor.arrivals) == 1


async def test_a_duplicate_id_does_not_affect_the_first_completion() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1", path="a.py")
        await editor.says("complete", "1", path="a.py")
        await editor.waits(lambda: bool(editor.text("1")))

        assert editor.engine.num_open == 1
    assert editor.ends("1") == ["duplicate_id"]


async def test_each_of_200_concurrent_requests_ends_exactly_once() -> None:
    async with open_editor(FakeEngine(chunks_of(*"abcdefgh"))) as editor:
        ids = [str(number) for number in range(200)]
        for id in ids:
            await editor.says("complete", id)
        await editor.waits_for_end(*ids)

    assert all(len(editor.ends(id)) == 1 for id in ids)
    assert editor.engine.max_open <= MAX_CONCURRENT_COMPLETIONS


async def test_completions_beyond_the_concurrency_limit_are_rejected() -> None:
    async with open_editor(_hanging_engine()) as editor:
        ids = [str(number) for number in range(200)]
        for id in ids:
            await editor.says("complete", id)
        await editor.waits(lambda: editor.engine.num_yielded == MAX_CONCURRENT_COMPLETIONS)

        ends = Counter(end for id in ids for end in editor.ends(id))
        assert ends == {"too_many_requests": 200 - MAX_CONCURRENT_COMPLETIONS}
        assert editor.engine.max_open == MAX_CONCURRENT_COMPLETIONS


async def test_many_requests_for_one_file_supersede_each_other_and_are_not_rejected() -> None:
    async with open_editor(_hanging_engine()) as editor:
        ids = [str(number) for number in range(200)]
        for id in ids:
            await editor.says("complete", id, path="a.py")
        await editor.waits_for_end(*ids[:-1])

    assert Counter(end for id in ids for end in editor.ends(id)) == {"superseded": 199}


async def test_another_completion_can_start_after_one_at_the_concurrency_limit_ends() -> None:
    async with open_editor(_hanging_engine()) as editor:
        for number in range(MAX_CONCURRENT_COMPLETIONS):
            await editor.says("complete", str(number))
        await editor.says("cancel", "0")
        await editor.waits_for_end("0")

        await editor.says("complete", "late")
        await editor.waits(lambda: bool(editor.text("late")))

    assert editor.ends("late") == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "binary_frame"),
        ("{", "invalid_json"),
        ('{"type":"hello","id":"1"}', "unknown_type"),
        ('{"type":"cancel"}', "invalid_field"),
    ],
)
async def test_an_invalid_frame_gets_an_error_and_the_connection_stays_open(
    text: str | None, code: str
) -> None:
    async with open_editor() as editor:
        await editor.connection.on_frame(text)
        await editor.says("complete", "2")
        await editor.waits_for_end("2")

    error = editor.frames[0]
    assert isinstance(error, ErrorFrame)
    assert error.code == code
    assert editor.ends("2") == ["stop"]


async def test_closing_ends_all_completions_in_flight() -> None:
    async with open_editor(_hanging_engine()) as editor:
        for number in range(5):
            await editor.says("complete", str(number))
        await editor.waits(lambda: editor.engine.num_open == 5)

        await editor.connection.close()

        assert editor.engine.num_open == 0
    # Nobody would read a last frame.
    assert all(isinstance(frame, DeltaFrame) for frame in editor.frames)


async def test_closing_leaves_no_tasks() -> None:
    tasks_before = asyncio.all_tasks()
    async with open_editor(_hanging_engine()) as editor:
        for number in range(5):
            await editor.says("complete", str(number))
        await editor.connection.close()

    assert asyncio.all_tasks() == tasks_before


async def test_closing_ends_a_cancelled_completion_too() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1")
        await editor.says("cancel", "1")

        await editor.connection.close()

        assert editor.engine.num_open == 0


async def test_closing_an_idle_connection_does_nothing() -> None:
    async with open_editor() as editor:
        await editor.connection.close()

    assert editor.frames == []


async def test_the_completion_of_a_disconnected_client_ends() -> None:
    async with open_editor() as editor:
        editor.has_left = True
        await editor.says("complete", "1")
        await editor.waits(lambda: editor.engine.num_yielded > 0 and editor.engine.num_open == 0)

    assert editor.frames == []


async def test_an_error_that_cannot_be_delivered_raises_client_disconnected() -> None:
    async with open_editor() as editor:
        editor.has_left = True

        with pytest.raises(ClientDisconnected):
            await editor.connection.on_frame("{")


async def test_an_automatic_request_supersedes_an_older_one_and_a_prefetch() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1", path="a.py")
        await editor.says("complete", "2", path="a.py", trigger="prefetch")
        await editor.says("complete", "3", path="a.py", trigger="automatic")

        await editor.waits_for_end("1", "2")

        assert editor.ends("1") == editor.ends("2") == ["superseded"]
        assert not editor.ends("3")


@pytest.mark.parametrize("mode", ["chat", "edit"])
async def test_a_chat_or_edit_and_a_completion_of_one_file_do_not_supersede_each_other(
    mode: str,
) -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1", path="a.py", mode=mode)
        await editor.says("complete", "2", path="a.py")
        await editor.says("complete", "3", path="a.py")

        await editor.waits_for_end("2")

        assert not editor.ends("1")


async def test_a_newer_edit_of_a_file_supersedes_the_older() -> None:
    async with open_editor(_hanging_engine()) as editor:
        await editor.says("complete", "1", path="a.py", mode="edit")
        await editor.says("complete", "2", path="a.py", mode="edit")

        await editor.waits_for_end("1")

        assert editor.ends("1") == ["superseded"]
        assert not editor.ends("2")


async def test_recent_edits_and_diagnostics_reach_the_request() -> None:
    edit = {"path": "b.py", "start_line": 3, "removed": "x\n", "added": "y\n"}
    diagnostic = {"line": 1, "severity": "hint", "message": "unused"}
    async with open_editor() as editor:
        fields = {"recent_edits": [edit] * 20, "diagnostics": [diagnostic] * 20}
        await editor.says("complete", "1", mode="edit", **fields)
        await editor.waits_for_end("1")

    draft = editor.arrivals[0].draft
    assert draft.recent_edits[0] == RecentEdit("b.py", 3, "x\n", "y\n")
    assert draft.diagnostics[0] == Diagnostic(1, DiagnosticSeverity.HINT, "unused")
    # The parser keeps one more than the 16 allowed, so that validation rejects the request.
    assert (len(draft.recent_edits), len(draft.diagnostics)) == (17, 17)

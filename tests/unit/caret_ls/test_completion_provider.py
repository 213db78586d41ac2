"""The suggestions offered to the editor, with a gateway that a test controls."""

import asyncio

import pytest

from caret_ls.completion_provider import InlineRequest
from caret_ls.gateway_connection import RequestEnded
from caret_ls.in_flight_request import GRACE_S
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import ServerStatus, SignedOutReason
from caret_ls.text_document import Position
from caret_ls.workspace import SelectedCompletion
from tests.unit.caret_ls.provider_harness import URI, Desk, response_frames


@pytest.fixture
async def desk() -> Desk:
    new_desk = Desk()
    new_desk.open("a = 1\nb = |\n")
    return new_desk


async def test_a_suggestion_combines_all_deltas(desk: Desk) -> None:
    desk.gateway.ready.append(response_frames("a ", "+ 1"))

    offer = await desk.request_suggestion()

    assert offer is not None
    assert (offer.text, offer.position, offer.replaces) == ("a + 1", Position(1, 4), 0)
    (frame,) = desk.gateway.requests
    assert (frame["prefix"], frame["suffix"]) == ("a = 1\nb = ", "\n")
    assert (frame["trigger"], frame["language"], frame["path"]) == ("automatic", "python", "a.py")
    assert desk.statuses == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]
    assert desk.assistant.last_reason is None


async def test_the_time_from_the_request_to_the_response_is_reported(desk: Desk) -> None:
    request = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.clock.now_s += 0.137
    desk.gateway.respond("1", "a + 1")
    await request
    desk.clock.now_s += 1.0
    desk.outcomes.dismiss(URI, desk.clock.now_s)

    assert desk.reported[0].display_ms == 137


async def test_the_first_skip_reason_is_not_requested(desk: Desk) -> None:
    assert desk.assistant.last_reason is SkipReason.NOT_REQUESTED


async def test_the_skip_reason_is_that_of_the_newest_request(desk: Desk) -> None:
    older = desk.request_suggestion()
    await desk.wait_for_request(1)
    other_uri = "file:///nowhere/b.py"
    desk.open("# why |\n", uri=other_uri)
    await desk.assistant.provide(other_uri, InlineRequest(desk.at))
    desk.gateway.respond("1", "a")

    assert await older is not None, "it arrived later, but was requested before"
    assert desk.assistant.last_reason is SkipReason.IN_COMMENT


async def test_a_cancelled_request_has_the_reason_newer_keystroke(desk: Desk) -> None:
    task = desk.request_suggestion()
    await desk.wait_for_request(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert desk.assistant.last_reason is SkipReason.NEWER_KEYSTROKE


def selected(text: str, *, num_typed: int, behind: int = 0) -> SelectedCompletion:
    """Return an entry of the editor's completion list, at the cursor of `desk`."""
    return SelectedCompletion(Position(1, 4 - num_typed), Position(1, 4 + behind), text)


async def test_a_suggestion_continues_the_selected_entry(desk: Desk) -> None:
    desk.open("a = 1\nb =w|\n")
    desk.gateway.ready.append(response_frames(" * 2"))

    offer = await desk.request_suggestion(selected_completion=selected("width", num_typed=1))

    assert offer is not None
    assert (offer.text, offer.position) == ("idth * 2", Position(1, 4))
    assert desk.gateway.requests[0]["prefix"] == "a = 1\nb =width"
    desk.outcomes.close(URI, desk.clock.now_s + 1)
    assert (desk.reported[0].event, desk.reported[0].chars) == ("shown", len(" * 2"))


@pytest.mark.parametrize(
    "selected_completion",
    [
        selected("height", num_typed=1),
        selected("width", num_typed=1, behind=1),
        selected("", num_typed=1),
    ],
    ids=["fuzzy match", "text after the cursor removed", "shorter"],
)
async def test_an_entry_that_cannot_be_continued_gets_no_suggestion(
    desk: Desk, selected_completion: SelectedCompletion
) -> None:
    desk.open("a = 1\nb =w|x\n")

    assert await desk.request_suggestion(selected_completion=selected_completion) is None
    assert desk.assistant.last_reason is SkipReason.COMPLETION_LIST_OPEN
    assert desk.gateway.requests == []


async def test_a_cached_suggestion_that_begins_with_the_entry_is_offered(desk: Desk) -> None:
    desk.gateway.ready.append(response_frames("width * 2"))
    await desk.request_suggestion()
    desk.type("w")

    offer = await desk.request_suggestion(
        selected_completion=SelectedCompletion(Position(1, 4), Position(1, 5), "width")
    )

    assert offer is not None
    assert offer.text == "idth * 2"
    assert len(desk.gateway.requests) == 1


async def test_the_rest_of_a_partly_typed_suggestion_is_offered_without_a_request(
    desk: Desk,
) -> None:
    desk.gateway.ready.append(response_frames("a + 1"))
    await desk.request_suggestion()
    desk.type("a ")

    offer = await desk.request_suggestion()

    assert offer is not None
    assert offer.text == "+ 1"
    assert len(desk.gateway.requests) == 1
    assert desk.reported == []


async def test_a_newer_keystroke_cancels_the_older_request(desk: Desk) -> None:
    older = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.gateway.respond("1", "a", finish_reason=None)
    await asyncio.sleep(0.01)
    desk.type("x")
    newer = desk.request_suggestion()
    await desk.wait_for_request(2)
    desk.gateway.respond("2", " + 1")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == " + 1"
    assert desk.gateway.cancelled == ["1"]


async def test_a_newer_keystroke_joins_a_matching_request(desk: Desk) -> None:
    older = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.gateway.respond("1", "fo", finish_reason=None)
    await asyncio.sleep(0.01)
    desk.type("f")
    newer = desk.request_suggestion()
    await asyncio.sleep(2 * GRACE_S)
    desk.gateway.respond("1", "o(a)")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == "oo(a)"
    assert len(desk.gateway.requests) == 1
    assert desk.gateway.cancelled == []


async def test_a_joined_request_that_no_longer_matches_is_replaced_by_a_new_one(desk: Desk) -> None:
    older = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.type("f")
    newer = desk.request_suggestion()
    await asyncio.sleep(0.01)
    desk.gateway.respond("1", "bar")
    await desk.wait_for_request(2)
    desk.gateway.respond("2", "oo")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == "oo"


async def test_a_request_cancelled_by_the_editor_is_cancelled_at_the_gateway(desk: Desk) -> None:
    task = desk.request_suggestion()
    await desk.wait_for_request(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    before = list(desk.gateway.cancelled)
    await asyncio.sleep(2 * GRACE_S)

    assert before == []
    assert desk.gateway.cancelled == ["1"]


async def test_a_repeated_request_joins_the_cancelled_one(desk: Desk) -> None:
    task = desk.request_suggestion()
    await desk.wait_for_request(1)
    task.cancel()
    second_request = desk.request_suggestion()
    await asyncio.sleep(2 * GRACE_S)
    desk.gateway.respond("1", "a")

    assert await second_request is not None
    assert len(desk.gateway.requests) == 1


async def test_a_request_waits_for_the_next_keystroke(desk: Desk) -> None:
    desk.spend_allowance()
    desk.debouncer.on_keystroke(desk.clock.now_s)
    first = desk.request_suggestion()
    await asyncio.sleep(0.01)
    desk.type("c")
    second = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.gateway.respond("1", " + 1")

    assert await first is None
    assert await second is not None
    assert [frame["prefix"] for frame in desk.gateway.requests] == ["a = 1\nb = c"]


async def test_an_invoked_request_does_not_wait_for_the_next_keystroke(desk: Desk) -> None:
    desk.debouncer.min_delay_ms = 60_000
    desk.debouncer.on_keystroke(desk.clock.now_s)
    desk.gateway.ready.append(response_frames("c"))
    waiting = desk.request_suggestion()
    await asyncio.sleep(0.01)

    assert desk.gateway.requests == []
    async with asyncio.timeout(10):
        assert await desk.request_suggestion(is_invoked=True) is not None
    assert await waiting is None


async def test_no_request_is_sent_in_a_comment(desk: Desk) -> None:
    desk.open("# why |\n")

    assert await desk.request_suggestion() is None
    assert desk.gateway.requests == []
    assert desk.assistant.last_reason is SkipReason.IN_COMMENT


async def test_an_invoked_request_is_sent_in_a_comment(desk: Desk) -> None:
    desk.open("# why |\n")
    desk.gateway.ready.append(response_frames("not"))

    assert await desk.request_suggestion(is_invoked=True) is not None
    assert desk.gateway.requests[0]["trigger"] == "manual"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (response_frames("shown?", finish_reason="filtered"), SkipReason.NOTHING_TO_SUGGEST),
        (response_frames(), SkipReason.NOTHING_TO_SUGGEST),
        (response_frames(" \n"), SkipReason.NOTHING_TO_SUGGEST),
        (response_frames(finish_reason="shed"), SkipReason.OVERLOADED),
        (response_frames(finish_reason="budget_exceeded"), SkipReason.OVER_BUDGET),
        (response_frames("ab", finish_reason="superseded"), SkipReason.NEWER_KEYSTROKE),
        ([RequestEnded("path_excluded")], SkipReason.EXCLUDED),
        ([RequestEnded("offline")], SkipReason.OFFLINE),
        ([RequestEnded("internal_error")], SkipReason.REFUSED),
        ([RequestEnded("rate_limited", retry_after_s=2.0)], SkipReason.OVERLOADED),
    ],
)
async def test_every_completion_without_text_has_a_reason(
    desk: Desk, response: list[dict[str, str] | RequestEnded], reason: SkipReason
) -> None:
    desk.gateway.ready.append(response)

    assert await desk.request_suggestion() is None
    assert desk.assistant.last_reason is reason


async def test_an_empty_completion_is_not_requested_again(desk: Desk) -> None:
    desk.gateway.ready.append(response_frames(finish_reason="filtered"))
    await desk.request_suggestion()
    await desk.request_suggestion()

    assert len(desk.gateway.requests) == 1
    assert desk.assistant.last_reason is SkipReason.NOTHING_TO_SUGGEST


async def test_requests_resume_after_retry_after(desk: Desk) -> None:
    desk.gateway.ready += [[RequestEnded("rate_limited", retry_after_s=2.0)], response_frames("a")]
    await desk.request_suggestion()
    desk.clock.now_s += 1.9
    too_early = await desk.request_suggestion()
    desk.clock.now_s += 0.2

    assert too_early is None
    assert await desk.request_suggestion() is not None
    assert len(desk.gateway.requests) == 2


async def test_an_exceeded_budget_is_tried_again_after_a_minute(desk: Desk) -> None:
    desk.gateway.ready += [
        [RequestEnded("token_quota_exceeded", retry_after_s=30_000.0)],
        response_frames("a"),
    ]
    await desk.request_suggestion()
    await desk.request_suggestion()
    skip_reason = desk.assistant.last_reason
    desk.clock.now_s += 61

    assert skip_reason is SkipReason.OVER_BUDGET
    assert await desk.request_suggestion() is not None


async def test_an_invoked_request_ignores_the_pause_after_an_exceeded_budget(desk: Desk) -> None:
    desk.gateway.ready += [response_frames(finish_reason="budget_exceeded"), response_frames("a")]
    await desk.request_suggestion()

    assert await desk.request_suggestion() is None
    assert await desk.request_suggestion(is_invoked=True) is not None
    assert desk.statuses[-1] is ServerStatus.READY


async def test_the_status_is_over_budget_until_a_request_succeeds(desk: Desk) -> None:
    desk.gateway.ready += [response_frames(finish_reason="budget_exceeded"), response_frames("a")]
    await desk.request_suggestion()
    desk.clock.now_s += 61
    await desk.request_suggestion()

    statuses = [status for status in desk.statuses if status is not ServerStatus.WORKING]
    assert statuses == [ServerStatus.READY, ServerStatus.OVER_BUDGET, ServerStatus.READY]


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ({"is_connected": False}, SkipReason.OFFLINE),
        ({"signed_out_reason": SignedOutReason.NO_KEY}, SkipReason.SIGNED_OUT),
        ({"is_paused": True}, SkipReason.PAUSED),
    ],
)
async def test_no_request_is_sent_without_a_usable_gateway(
    desk: Desk, conditions: dict[str, bool | SignedOutReason], reason: SkipReason
) -> None:
    desk.board.set(**conditions)

    assert await desk.request_suggestion() is None
    assert desk.assistant.last_reason is reason
    assert desk.gateway.requests == []


async def test_a_language_unknown_to_the_gateway_is_omitted(desk: Desk) -> None:
    desk.open("a = |\n", language="klingon")
    desk.gateway.ready += [[RequestEnded("unknown_language")], response_frames("b")]
    await desk.request_suggestion()

    assert await desk.request_suggestion() is not None
    assert [frame["language"] for frame in desk.gateway.requests] == ["klingon", ""]


async def test_a_file_closed_during_the_request_gets_no_suggestion(desk: Desk) -> None:
    task = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.assistant.cancel(URI)
    desk.files.close(URI)

    assert await task is None
    assert desk.gateway.cancelled == ["1"]
    assert await desk.request_suggestion() is None
    assert desk.assistant.last_reason is SkipReason.FILE_CLOSED


async def test_a_file_changed_during_the_request_gets_no_suggestion(desk: Desk) -> None:
    task = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.type("x")
    desk.gateway.respond("1", "a + 1")

    assert await task is None
    assert desk.reported == []


async def test_a_visible_suggestion_stays_while_its_string_is_typed(desk: Desk) -> None:
    desk.gateway.ready.append(response_frames('f("some text")'))
    await desk.request_suggestion()
    desk.type('f("so')

    offer = await desk.request_suggestion()

    assert offer is not None
    assert offer.text == 'me text")'
    desk.type("x")
    assert await desk.request_suggestion() is None
    assert desk.assistant.last_reason is SkipReason.IN_STRING

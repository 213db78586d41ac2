"""The suggestions offered to the editor, with a gateway that a test controls."""

import asyncio
from typing import Final

import pytest

from caret_ls.completion_provider import InlineRequest
from caret_ls.gateway_connection import RequestEnded
from caret_ls.in_flight_request import GRACE_S
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import ServerStatus, SignedOutReason
from caret_ls.text_document import Position
from tests.unit.caret_ls.provider_harness import URI, Harness, response_frames

_AFTER_BUDGET_PAUSE_S: Final = 61  # after an exceeded budget, requests pause for a minute


@pytest.fixture
async def harness() -> Harness:
    harness = Harness()
    harness.open("a = 1\nb = |\n")
    return harness


async def test_a_suggestion_combines_all_deltas(harness: Harness) -> None:
    harness.gateway.ready.append(response_frames("a ", "+ 1"))

    offer = await harness.request_suggestion()

    assert offer is not None
    assert (offer.text, offer.position, offer.replaces) == ("a + 1", Position(1, 4), 0)
    (frame,) = harness.gateway.requests
    assert (frame["prefix"], frame["suffix"]) == ("a = 1\nb = ", "\n")
    assert (frame["trigger"], frame["language"], frame["path"]) == ("automatic", "python", "a.py")
    assert harness.statuses == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]
    assert harness.completions.last_reason is None


async def test_the_time_from_the_request_to_the_response_is_reported(harness: Harness) -> None:
    request = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.clock.now_s += 0.137
    harness.gateway.respond("1", "a + 1")
    await request
    harness.clock.now_s += 1.0
    harness.outcomes.dismiss(URI, harness.clock.now_s)  # only now are the outcomes reported

    assert harness.reported[0].display_ms == 137


async def test_before_the_first_request_the_reason_is_that_none_was_made(harness: Harness) -> None:
    assert harness.completions.last_reason is SkipReason.NOT_REQUESTED


async def test_the_skip_reason_is_that_of_the_newest_request(harness: Harness) -> None:
    older = harness.request_suggestion()
    await harness.wait_for_request(1)
    other_uri = "file:///nowhere/b.py"
    harness.open("# why |\n", uri=other_uri)
    await harness.completions.provide(other_uri, InlineRequest(harness.at))
    harness.gateway.respond("1", "a")

    assert await older is not None, "the older request must still get its suggestion"
    assert harness.completions.last_reason is SkipReason.IN_COMMENT


async def test_a_cancelled_request_has_the_reason_newer_keystroke(harness: Harness) -> None:
    task = harness.request_suggestion()
    await harness.wait_for_request(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert harness.completions.last_reason is SkipReason.NEWER_KEYSTROKE


async def test_the_rest_of_a_partly_typed_suggestion_is_offered_without_a_request(
    harness: Harness,
) -> None:
    harness.gateway.ready.append(response_frames("a + 1"))
    await harness.request_suggestion()
    harness.type("a ")

    offer = await harness.request_suggestion()

    assert offer is not None
    assert offer.text == "+ 1"
    assert len(harness.gateway.requests) == 1
    assert harness.reported == []


async def test_a_newer_keystroke_cancels_the_older_request(harness: Harness) -> None:
    older = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.gateway.respond("1", "a", finish_reason=None)
    await asyncio.sleep(0.01)  # the provider reads the text
    harness.type("x")
    newer = harness.request_suggestion()
    await harness.wait_for_request(2)
    harness.gateway.respond("2", " + 1")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == " + 1"
    assert harness.gateway.cancelled == ["1"]


async def test_a_newer_keystroke_joins_a_matching_request(harness: Harness) -> None:
    older = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.gateway.respond("1", "fo", finish_reason=None)
    await asyncio.sleep(0.01)  # the provider reads the text
    harness.type("f")
    newer = harness.request_suggestion()
    await asyncio.sleep(2 * GRACE_S)
    harness.gateway.respond("1", "o(a)")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == "oo(a)"
    assert len(harness.gateway.requests) == 1
    assert harness.gateway.cancelled == []


async def test_a_joined_request_that_no_longer_matches_is_replaced_by_a_new_one(
    harness: Harness,
) -> None:
    older = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.type("f")
    newer = harness.request_suggestion()
    await asyncio.sleep(0.01)  # the newer keystroke joins the request
    harness.gateway.respond("1", "bar")
    await harness.wait_for_request(2)
    harness.gateway.respond("2", "oo")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == "oo"


async def test_a_request_cancelled_by_the_editor_is_cancelled_at_the_gateway_after_a_grace_period(
    harness: Harness,
) -> None:
    task = harness.request_suggestion()
    await harness.wait_for_request(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    cancelled_at_once = list(harness.gateway.cancelled)
    await asyncio.sleep(2 * GRACE_S)

    assert cancelled_at_once == []
    assert harness.gateway.cancelled == ["1"]


async def test_a_repeated_request_joins_the_cancelled_one(harness: Harness) -> None:
    task = harness.request_suggestion()
    await harness.wait_for_request(1)
    task.cancel()
    second_request = harness.request_suggestion()
    await asyncio.sleep(2 * GRACE_S)
    harness.gateway.respond("1", "a")

    assert await second_request is not None
    assert len(harness.gateway.requests) == 1


async def test_a_delayed_request_is_not_sent_after_another_keystroke(harness: Harness) -> None:
    harness.spend_allowance()
    harness.debouncer.on_keystroke(harness.clock.now_s)
    first = harness.request_suggestion()
    await asyncio.sleep(0.01)  # the first request begins to wait for its delay
    harness.type("c")
    second = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.gateway.respond("1", " + 1")

    assert await first is None
    assert await second is not None
    assert [frame["prefix"] for frame in harness.gateway.requests] == ["a = 1\nb = c"]


async def test_an_invoked_request_is_not_delayed(harness: Harness) -> None:
    harness.debouncer.min_delay_ms = 60_000
    harness.debouncer.on_keystroke(harness.clock.now_s)
    harness.gateway.ready.append(response_frames("c"))
    waiting = harness.request_suggestion()
    await asyncio.sleep(0.01)  # the request begins to wait for its delay

    assert harness.gateway.requests == []
    async with asyncio.timeout(10):
        assert await harness.request_suggestion(is_invoked=True) is not None
    assert await waiting is None


async def test_no_request_is_sent_in_a_comment(harness: Harness) -> None:
    harness.open("# why |\n")

    assert await harness.request_suggestion() is None
    assert harness.gateway.requests == []
    assert harness.completions.last_reason is SkipReason.IN_COMMENT


async def test_an_invoked_request_is_sent_in_a_comment(harness: Harness) -> None:
    harness.open("# why |\n")
    harness.gateway.ready.append(response_frames("not"))

    assert await harness.request_suggestion(is_invoked=True) is not None
    assert harness.gateway.requests[0]["trigger"] == "manual"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (response_frames("a + 1", finish_reason="filtered"), SkipReason.NOTHING_TO_SUGGEST),
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
async def test_every_completion_without_a_suggestion_has_a_reason(
    harness: Harness, response: list[dict[str, str] | RequestEnded], reason: SkipReason
) -> None:
    harness.gateway.ready.append(response)

    assert await harness.request_suggestion() is None
    assert harness.completions.last_reason is reason


async def test_an_empty_completion_is_not_requested_again(harness: Harness) -> None:
    harness.gateway.ready.append(response_frames(finish_reason="filtered"))
    await harness.request_suggestion()
    await harness.request_suggestion()

    assert len(harness.gateway.requests) == 1
    assert harness.completions.last_reason is SkipReason.NOTHING_TO_SUGGEST


async def test_requests_resume_after_retry_after(harness: Harness) -> None:
    harness.gateway.ready += [
        [RequestEnded("rate_limited", retry_after_s=2.0)],
        response_frames("a"),
    ]
    await harness.request_suggestion()
    harness.clock.now_s += 1.9
    offer_before_the_time = await harness.request_suggestion()
    harness.clock.now_s += 0.2

    assert offer_before_the_time is None
    assert await harness.request_suggestion() is not None
    assert len(harness.gateway.requests) == 2


async def test_an_exceeded_budget_is_tried_again_after_a_minute(harness: Harness) -> None:
    harness.gateway.ready += [
        [RequestEnded("token_quota_exceeded", retry_after_s=30_000.0)],
        response_frames("a"),
    ]
    await harness.request_suggestion()
    await harness.request_suggestion()
    skip_reason = harness.completions.last_reason
    harness.clock.now_s += _AFTER_BUDGET_PAUSE_S

    assert skip_reason is SkipReason.OVER_BUDGET
    assert await harness.request_suggestion() is not None


async def test_an_invoked_request_ignores_the_pause_after_an_exceeded_budget(
    harness: Harness,
) -> None:
    harness.gateway.ready += [
        response_frames(finish_reason="budget_exceeded"),
        response_frames("a"),
    ]
    await harness.request_suggestion()

    assert await harness.request_suggestion() is None
    assert await harness.request_suggestion(is_invoked=True) is not None
    assert harness.statuses[-1] is ServerStatus.READY


async def test_the_status_is_over_budget_until_a_request_succeeds(harness: Harness) -> None:
    harness.gateway.ready += [
        response_frames(finish_reason="budget_exceeded"),
        response_frames("a"),
    ]
    await harness.request_suggestion()
    harness.clock.now_s += _AFTER_BUDGET_PAUSE_S
    await harness.request_suggestion()

    statuses = [status for status in harness.statuses if status is not ServerStatus.WORKING]
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
    harness: Harness, conditions: dict[str, bool | SignedOutReason], reason: SkipReason
) -> None:
    harness.board.set(**conditions)

    assert await harness.request_suggestion() is None
    assert harness.completions.last_reason is reason
    assert harness.gateway.requests == []


async def test_a_language_unknown_to_the_gateway_is_omitted(harness: Harness) -> None:
    harness.open("a = |\n", language="klingon")
    harness.gateway.ready += [[RequestEnded("unknown_language")], response_frames("b")]
    await harness.request_suggestion()

    assert await harness.request_suggestion() is not None
    assert [frame["language"] for frame in harness.gateway.requests] == ["klingon", ""]


async def test_a_file_closed_during_the_request_gets_no_suggestion(harness: Harness) -> None:
    task = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.completions.cancel(URI)
    harness.files.close(URI)

    assert await task is None
    assert harness.gateway.cancelled == ["1"]
    assert await harness.request_suggestion() is None
    assert harness.completions.last_reason is SkipReason.FILE_CLOSED


async def test_a_file_changed_during_the_request_gets_no_suggestion(harness: Harness) -> None:
    task = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.type("x")
    harness.gateway.respond("1", "a + 1")

    assert await task is None
    assert harness.reported == []


async def test_a_visible_suggestion_stays_while_its_string_is_typed() -> None:
    harness = Harness(complete_in_strings=False)
    harness.open("a = 1\nb = |\n")
    harness.gateway.ready.append(response_frames('f("some text")'))
    await harness.request_suggestion()
    harness.type('f("so')

    offer = await harness.request_suggestion()

    assert offer is not None
    assert offer.text == 'me text")'

    harness.type("x")  # other text hides the suggestion, so the rule for strings applies
    assert await harness.request_suggestion() is None
    assert harness.completions.last_reason is SkipReason.IN_STRING

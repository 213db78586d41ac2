"""Suggestions that are offered with their first line and then grow; shown text is never removed."""

import asyncio

import pytest

from caret_ls.gateway_connection import RequestEnded
from tests.fakes.polling import wait_until
from tests.unit.caret_ls.provider_harness import URI, Harness


@pytest.fixture
async def harness() -> Harness:
    harness = Harness()
    harness.completions.can_grow = True
    harness.open("def f():|\n")
    return harness


async def _show_first_line(harness: Harness) -> None:
    """Request a suggestion, and let the gateway send its first line."""
    request = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.gateway.respond("1", "\n    a = 1", "\n", finish_reason=None)
    offer = await request
    assert offer is not None
    assert offer.text == "\n    a = 1"


async def _request_text(harness: Harness) -> str | None:
    offer = await harness.request_suggestion()
    return None if offer is None else offer.text


async def test_a_line_that_may_still_be_withheld_is_not_shown(harness: Harness) -> None:
    request = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.gateway.respond("1", "\n    password = 'x'", finish_reason=None)
    await wait_until(harness.gateway.responses["1"].empty)

    for _ in range(20):
        await asyncio.sleep(0)  # the text reaches the provider
    # The line is not complete without its line break, so the gateway may still withhold it.
    assert not request.done()

    harness.gateway.respond("1", finish_reason="filtered")
    assert await request is None


async def test_the_rest_follows_into_the_same_suggestion(harness: Harness) -> None:
    await _show_first_line(harness)

    harness.gateway.respond("1", "    return a\n", finish_reason=None)
    await wait_until(lambda: len(harness.grown) == 1)
    second = await harness.request_suggestion()
    harness.gateway.respond("1", "    # end")
    await wait_until(lambda: len(harness.grown) == 2)
    third = await harness.request_suggestion()

    assert second is not None
    assert third is not None
    assert second.id == third.id == "1"
    assert second.text == "\n    a = 1\n    return a"
    assert third.text == "\n    a = 1\n    return a\n    # end"
    assert [suggestion.is_whole for suggestion in harness.grown] == [False, True]
    assert len(harness.gateway.requests) == 1


async def test_for_a_growing_suggestion_the_time_to_its_first_line_is_the_response_time(
    harness: Harness,
) -> None:
    harness.debouncer.on_keystroke(harness.clock.now_s)
    await _show_first_line(harness)
    harness.clock.now_s += 5  # if this were the response time, later requests would be delayed

    harness.gateway.respond("1", "    return a")
    await wait_until(lambda: len(harness.grown) == 1)

    assert harness.debouncer.is_eager()  # a request would be sent without a delay


async def test_for_a_cancelled_growing_suggestion_the_time_to_its_first_line_is_the_response_time(
    harness: Harness,
) -> None:
    harness.debouncer.on_keystroke(harness.clock.now_s)
    await _show_first_line(harness)
    harness.clock.now_s += 5

    harness.completions.cancel(URI)
    await wait_until(lambda: harness.gateway.cancelled == ["1"])

    assert harness.debouncer.is_eager()


async def test_for_a_suggestion_offered_at_its_end_the_whole_time_is_the_response_time(
    harness: Harness,
) -> None:
    harness.debouncer.on_keystroke(harness.clock.now_s)
    request = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.clock.now_s += 5

    harness.gateway.respond("1", " pass")  # without a line break that would end the first line
    assert await request is not None

    assert not harness.debouncer.is_eager()


async def test_an_editor_that_cannot_show_growing_suggestions_gets_the_whole_suggestion_at_once(
    harness: Harness,
) -> None:
    harness.completions.can_grow = False
    request = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.gateway.respond("1", "\n    a = 1", "\n", "    return a")

    offer = await request

    assert offer is not None
    assert offer.text == "\n    a = 1\n    return a"
    assert harness.grown == []


@pytest.mark.parametrize(
    "end",
    [RequestEnded("engine_disconnected"), RequestEnded("offline")],
    ids=["the engine dies", "the connection is lost"],
)
async def test_the_shown_part_stays_when_the_request_fails(
    harness: Harness, end: RequestEnded
) -> None:
    await _show_first_line(harness)

    harness.gateway.responses["1"].put_nowait(end)
    await wait_until(lambda: len(harness.grown) == 1)

    assert await _request_text(harness) == "\n    a = 1"

    harness.outcomes.accept("1", harness.clock.now_s)

    assert [outcome.event for outcome in harness.reported] == ["shown", "accepted"]


async def test_the_shown_part_stays_when_another_window_supersedes_the_request(
    harness: Harness,
) -> None:
    await _show_first_line(harness)

    harness.gateway.respond("1", finish_reason="superseded")
    await wait_until(lambda: len(harness.grown) == 1)

    assert await _request_text(harness) == "\n    a = 1"


async def test_typing_the_shown_text_does_not_cancel_the_request(harness: Harness) -> None:
    await _show_first_line(harness)
    harness.type("\n")

    assert await _request_text(harness) == "    a = 1"
    harness.gateway.respond("1", "    return a")
    await wait_until(lambda: len(harness.grown) == 1)

    assert await _request_text(harness) == "    a = 1\n    return a"
    assert harness.gateway.cancelled == []


async def test_a_request_after_the_whole_shown_part_is_typed_waits_for_the_rest(
    harness: Harness,
) -> None:
    await _show_first_line(harness)
    harness.type("\n    a = 1")

    request = harness.request_suggestion()
    harness.gateway.respond("1", "    return a")
    offer = await request

    assert offer is not None
    assert offer.text == "\n    return a"
    assert len(harness.gateway.requests) == 1


async def test_typing_other_text_ends_the_request(harness: Harness) -> None:
    await _show_first_line(harness)
    harness.type("x")

    await wait_until(lambda: harness.gateway.cancelled == ["1"])
    newer = harness.request_suggestion()
    await harness.wait_for_request(2)
    harness.gateway.respond("2", "y")

    offer = await newer
    assert offer is not None
    assert offer.text == "y"
    assert [outcome.event for outcome in harness.reported] == ["shown", "rejected"]
    assert harness.grown == []


async def test_a_shown_part_is_not_cached_after_other_text_was_typed(harness: Harness) -> None:
    await _show_first_line(harness)

    harness.type("x")

    await wait_until(lambda: harness.gateway.cancelled == ["1"])
    await wait_until(lambda: len(harness.cache) == 0)


async def test_closing_the_file_ends_the_request(harness: Harness) -> None:
    await _show_first_line(harness)

    harness.completions.cancel(URI)

    await wait_until(lambda: harness.gateway.cancelled == ["1"])

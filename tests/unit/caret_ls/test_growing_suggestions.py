"""Suggestions that are offered with their first line and grow: nothing shown is withdrawn."""

import asyncio

import pytest

from caret_ls.gateway_connection import RequestEnded
from tests.fakes.polling import wait_until
from tests.unit.caret_ls.provider_harness import URI, Desk


@pytest.fixture
async def desk() -> Desk:
    new_desk = Desk()
    new_desk.assistant.can_grow = True
    new_desk.open("def f():|\n")
    return new_desk


async def _show_first_line(desk: Desk) -> None:
    """Request a suggestion of which the gateway has sent the first line."""
    request = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.gateway.respond("1", "\n    a = 1", "\n", finish_reason=None)
    offer = await request
    assert offer is not None
    assert offer.text == "\n    a = 1"


async def _text_now(desk: Desk) -> str | None:
    offer = await desk.request_suggestion()
    return None if offer is None else offer.text


async def test_a_line_that_may_still_be_withheld_is_not_shown(desk: Desk) -> None:
    request = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.gateway.respond("1", "\n    password = 'x'", finish_reason=None)
    await wait_until(desk.gateway.responses["1"].empty)

    for _ in range(20):
        await asyncio.sleep(0)  # the text reaches the provider
    assert not request.done()
    desk.gateway.respond("1", finish_reason="filtered")
    assert await request is None


async def test_the_rest_follows_into_the_same_suggestion(desk: Desk) -> None:
    await _show_first_line(desk)

    desk.gateway.respond("1", "    return a\n", finish_reason=None)
    await wait_until(lambda: len(desk.grown) == 1)
    second = await desk.request_suggestion()
    desk.gateway.respond("1", "    # end")
    await wait_until(lambda: len(desk.grown) == 2)
    third = await desk.request_suggestion()

    assert second is not None
    assert third is not None
    assert second.id == third.id == "1"
    assert second.text == "\n    a = 1\n    return a"
    assert third.text == "\n    a = 1\n    return a\n    # end"
    assert [suggestion.is_whole for suggestion in desk.grown] == [False, True]
    assert len(desk.gateway.requests) == 1


async def test_the_time_to_the_first_line_counts_as_the_response_time(desk: Desk) -> None:
    desk.debouncer.on_keystroke(desk.clock.now_s)
    await _show_first_line(desk)
    desk.clock.now_s += 5

    desk.gateway.respond("1", "    return a")
    await wait_until(lambda: len(desk.grown) == 1)

    assert desk.debouncer.is_eager()


async def test_without_a_first_line_the_whole_time_counts(desk: Desk) -> None:
    desk.debouncer.on_keystroke(desk.clock.now_s)
    request = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.clock.now_s += 5

    desk.gateway.respond("1", " pass")
    assert await request is not None

    assert not desk.debouncer.is_eager()


async def test_an_editor_that_cannot_show_growing_suggestions_gets_the_whole(desk: Desk) -> None:
    desk.assistant.can_grow = False
    request = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.gateway.respond("1", "\n    a = 1", "\n", "    return a")

    offer = await request

    assert offer is not None
    assert offer.text == "\n    a = 1\n    return a"
    assert desk.grown == []


@pytest.mark.parametrize(
    "end",
    [RequestEnded("engine_disconnected"), RequestEnded("offline")],
    ids=["the engine dies", "the connection is lost"],
)
async def test_the_shown_part_stays_when_the_request_fails(desk: Desk, end: RequestEnded) -> None:
    await _show_first_line(desk)

    desk.gateway.responses["1"].put_nowait(end)
    await wait_until(lambda: len(desk.grown) == 1)

    assert await _text_now(desk) == "\n    a = 1"
    desk.outcomes.accept("1", desk.clock.now_s)
    assert [outcome.event for outcome in desk.reported] == ["shown", "accepted"]


async def test_the_shown_part_stays_when_another_window_supersedes_the_request(desk: Desk) -> None:
    await _show_first_line(desk)

    desk.gateway.respond("1", finish_reason="superseded")
    await wait_until(lambda: len(desk.grown) == 1)

    assert await _text_now(desk) == "\n    a = 1"


async def test_typing_along_keeps_the_rest_coming(desk: Desk) -> None:
    await _show_first_line(desk)
    desk.type("\n")

    assert await _text_now(desk) == "    a = 1"
    desk.gateway.respond("1", "    return a")
    await wait_until(lambda: len(desk.grown) == 1)

    assert await _text_now(desk) == "    a = 1\n    return a"
    assert desk.gateway.cancelled == []


async def test_typing_past_the_shown_part_waits_for_the_rest(desk: Desk) -> None:
    await _show_first_line(desk)
    desk.type("\n    a = 1")

    request = desk.request_suggestion()
    desk.gateway.respond("1", "    return a")
    offer = await request

    assert offer is not None
    assert offer.text == "\n    return a"
    assert len(desk.gateway.requests) == 1


async def test_typing_against_the_shown_part_ends_the_request(desk: Desk) -> None:
    await _show_first_line(desk)
    desk.type("x")

    await wait_until(lambda: desk.gateway.cancelled == ["1"])
    newer = desk.request_suggestion()
    await desk.wait_for_request(2)
    desk.gateway.respond("2", "y")

    offer = await newer
    assert offer is not None
    assert offer.text == "y"
    assert [outcome.event for outcome in desk.reported] == ["shown", "rejected"]
    assert desk.grown == []


async def test_a_part_that_was_typed_against_is_not_offered_again(desk: Desk) -> None:
    await _show_first_line(desk)
    desk.type("x")
    await wait_until(lambda: desk.gateway.cancelled == ["1"])

    await wait_until(lambda: len(desk.cache) == 0)


async def test_closing_the_file_ends_the_request(desk: Desk) -> None:
    await _show_first_line(desk)

    desk.assistant.cancel(URI)

    await wait_until(lambda: desk.gateway.cancelled == ["1"])

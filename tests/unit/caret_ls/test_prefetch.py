"""Completions that are requested while a suggestion is shown, before the user needs them."""

import asyncio

from caret_ls.completion_provider import PREFETCH_AFTER_S
from caret_ls.in_flight_request import GRACE_S
from caret_ls.status_board import ServerStatus
from tests.fakes.polling import wait_until
from tests.unit.caret_ls.provider_harness import Desk, response_frames


async def test_the_continuation_is_prefetched_while_a_suggestion_is_shown() -> None:
    desk = Desk(prefetch=True)
    desk.open("b = |\n")
    desk.gateway.ready += [response_frames("a"), response_frames(" + 1")]
    await desk.request_suggestion()
    prefetch = await desk.wait_for_request(2)
    await asyncio.sleep(0.01)
    desk.type("a")

    offer = await desk.request_suggestion()

    assert (prefetch["trigger"], prefetch["prefix"]) == ("prefetch", "b = a")
    assert offer is not None
    assert offer.text == " + 1"
    assert len(desk.gateway.requests) == 2
    assert desk.statuses.count(ServerStatus.WORKING) == 1


async def test_nothing_is_prefetched_while_the_user_types_without_allowance() -> None:
    desk = Desk(prefetch=True)
    desk.open("b = |\n")
    desk.spend_allowance()
    desk.gateway.ready += [response_frames("foo"), response_frames("x")]
    await desk.request_suggestion()
    desk.type("y")
    await desk.request_suggestion()
    await asyncio.sleep(PREFETCH_AFTER_S / 2)

    assert [frame["trigger"] for frame in desk.gateway.requests] == ["automatic", "automatic"]


async def test_the_prefetch_continues_while_the_suggestion_is_typed() -> None:
    desk = Desk(prefetch=True)
    desk.open("b = |\n")
    desk.gateway.ready += [response_frames("foo")]
    await desk.request_suggestion()
    await desk.wait_for_request(2)
    for character in "fo":
        desk.type(character)
        await desk.request_suggestion()
        await asyncio.sleep(2 * GRACE_S)
    desk.gateway.respond("2", " + 1")
    await wait_until(lambda: len(desk.cache) == 2)
    desk.type("o")

    offer = await desk.request_suggestion()

    assert offer is not None
    assert offer.text == " + 1"
    assert desk.gateway.cancelled == []


async def test_the_prefetch_is_cancelled_when_other_text_is_typed() -> None:
    desk = Desk(prefetch=True)
    desk.open("b = |\n")
    desk.gateway.ready += [response_frames("foo")]
    await desk.request_suggestion()
    await desk.wait_for_request(2)

    desk.type("x")
    desk.gateway.ready += [response_frames("y")]
    await desk.request_suggestion()

    assert desk.gateway.cancelled == ["2"]


async def test_the_next_line_is_prefetched_if_nothing_follows_on_this_one() -> None:
    desk = Desk(prefetch=True)
    desk.open("if a:\n    b = |\n")
    desk.gateway.ready += [response_frames("12"), response_frames(), response_frames("c = 2")]
    await desk.request_suggestion()
    await desk.wait_for_request(2)
    await wait_until(lambda: len(desk.cache) == 2)
    for number in range(10):
        desk.debouncer.on_keystroke(float(number))  # the allowance grows
    desk.type("1")
    await desk.request_suggestion()
    await desk.wait_for_request(3)
    await wait_until(lambda: len(desk.cache) == 3)
    for character in "2\n    ":
        desk.type(character)

    offer = await desk.request_suggestion()

    assert offer is not None
    assert offer.text == "c = 2"
    assert [frame["prefix"] for frame in desk.gateway.requests] == [
        "if a:\n    b = ",
        "if a:\n    b = 12",
        "if a:\n    b = 12\n    ",
    ]

"""Completions that are requested while a suggestion is shown, before the user needs them."""

import asyncio

from caret_ls.completion_provider import PREFETCH_AFTER_S
from caret_ls.in_flight_request import GRACE_S
from caret_ls.status_board import ServerStatus
from tests.fakes.polling import wait_until
from tests.unit.caret_ls.provider_harness import Harness, response_frames


async def test_the_continuation_is_prefetched_while_a_suggestion_is_shown() -> None:
    harness = Harness(prefetch=True)
    harness.open("b = |\n")
    harness.gateway.ready += [response_frames("a"), response_frames(" + 1")]
    await harness.request_suggestion()
    prefetch = await harness.wait_for_request(2)
    await asyncio.sleep(0.01)  # the response to the prefetch arrives
    harness.type("a")

    offer = await harness.request_suggestion()

    assert (prefetch["trigger"], prefetch["prefix"]) == ("prefetch", "b = a")
    assert offer is not None
    assert offer.text == " + 1"
    assert len(harness.gateway.requests) == 2
    assert harness.statuses.count(ServerStatus.WORKING) == 1  # a prefetch does not set the status


async def test_nothing_is_prefetched_while_the_user_types_without_allowance() -> None:
    harness = Harness(prefetch=True)
    harness.open("b = |\n")
    harness.spend_allowance()
    harness.gateway.ready += [response_frames("foo"), response_frames("x")]
    await harness.request_suggestion()
    harness.type("y")
    await harness.request_suggestion()
    await asyncio.sleep(PREFETCH_AFTER_S / 2)  # still typing: a prefetch waits for a longer pause

    assert [frame["trigger"] for frame in harness.gateway.requests] == ["automatic", "automatic"]


async def test_the_prefetch_continues_while_the_suggestion_is_typed() -> None:
    harness = Harness(prefetch=True)
    harness.open("b = |\n")
    harness.gateway.ready += [response_frames("foo")]
    await harness.request_suggestion()
    await harness.wait_for_request(2)
    for character in "fo":
        harness.type(character)
        await harness.request_suggestion()
        await asyncio.sleep(2 * GRACE_S)  # a request that no keystroke joins is then cancelled
    harness.gateway.respond("2", " + 1")
    await wait_until(lambda: len(harness.cache) == 2)
    harness.type("o")

    offer = await harness.request_suggestion()

    assert offer is not None
    assert offer.text == " + 1"
    assert harness.gateway.cancelled == []


async def test_the_prefetch_is_cancelled_when_other_text_is_typed() -> None:
    harness = Harness(prefetch=True)
    harness.open("b = |\n")
    harness.gateway.ready += [response_frames("foo")]
    await harness.request_suggestion()
    await harness.wait_for_request(2)

    harness.type("x")
    harness.gateway.ready += [response_frames("y")]
    await harness.request_suggestion()

    assert harness.gateway.cancelled == ["2"]


async def test_the_next_line_is_prefetched_if_nothing_follows_on_this_one() -> None:
    harness = Harness(prefetch=True)
    harness.open("if a:\n    b = |\n")
    # The suggestion, its prefetched continuation (empty), and the prefetched next line.
    harness.gateway.ready += [response_frames("12"), response_frames(), response_frames("c = 2")]
    await harness.request_suggestion()
    await harness.wait_for_request(2)
    await wait_until(lambda: len(harness.cache) == 2)
    for number in range(10):
        harness.debouncer.on_keystroke(float(number))  # fills the allowance of requests again
    harness.type("1")
    await harness.request_suggestion()
    await harness.wait_for_request(3)
    await wait_until(lambda: len(harness.cache) == 3)
    for character in "2\n    ":
        harness.type(character)

    offer = await harness.request_suggestion()

    assert offer is not None
    assert offer.text == "c = 2"
    assert [frame["prefix"] for frame in harness.gateway.requests] == [
        "if a:\n    b = ",
        "if a:\n    b = 12",
        "if a:\n    b = 12\n    ",
    ]

"""A gateway that does not respond in time gets fewer requests. No request waits forever."""

import asyncio

import pytest

from caret_ls.debounce import MIN_DELAY_MS, USUAL_RESPONSE_MS
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import ServerStatus
from tests.unit.caret_ls.provider_harness import URI, Harness


@pytest.fixture
async def harness() -> Harness:
    harness = Harness()
    harness.open("a = 1\nb = |\n")
    return harness


def delay_ms(harness: Harness) -> float:
    """Return the delay of a request after one key."""
    harness.debouncer.on_keystroke(harness.clock.now_s)
    delay_s = harness.debouncer.delay_s(harness.clock.now_s, is_invoked=False, is_fresh_line=False)
    return round(delay_s * 1000)


async def test_a_request_without_a_response_times_out() -> None:
    # The limit is long enough to move the clock before it ends, even on a busy machine.
    harness = Harness(max_response_s=2.0)
    harness.open("a = 1\nb = |\n")

    request = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.clock.now_s += 20.0
    async with asyncio.timeout(10):
        assert await request is None

    assert delay_ms(harness) > MIN_DELAY_MS, "the gateway must get fewer requests"
    assert harness.completions.last_reason is SkipReason.OVERLOADED
    assert harness.statuses == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]
    assert harness.gateway.cancelled == ["1"]


async def test_a_late_response_increases_the_delay(harness: Harness) -> None:
    request = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.clock.now_s += 3.0
    harness.gateway.respond("1", "c")
    await request

    assert delay_ms(harness) > MIN_DELAY_MS


async def test_a_slow_request_cancelled_by_the_editor_increases_the_delay(harness: Harness) -> None:
    request = harness.request_suggestion()
    await harness.wait_for_request(1)
    harness.clock.now_s += 0.2
    harness.completions.cancel(URI)
    await asyncio.gather(request, return_exceptions=True)
    await asyncio.sleep(0)  # the ended request is noted

    # The request was cancelled after 200 ms.
    assert delay_ms(harness) == MIN_DELAY_MS + (200 - USUAL_RESPONSE_MS)


async def test_requests_cancelled_early_do_not_reduce_the_delay(harness: Harness) -> None:
    for number, waited_s in enumerate((0.2, 0.1, 0.1, 0.1), start=1):
        request = harness.request_suggestion()
        await harness.wait_for_request(number)
        harness.clock.now_s += waited_s
        harness.completions.cancel(URI)
        await asyncio.gather(request, return_exceptions=True)
        await asyncio.sleep(0)  # the ended request is noted

    # Only the first request counts: it was cancelled after 200 ms.
    assert delay_ms(harness) == MIN_DELAY_MS + (200 - USUAL_RESPONSE_MS)

"""A gateway that responds late or never: no request waits forever, and it gets fewer requests."""

import asyncio

import pytest

from caret_ls.debounce import MIN_WAIT_MS
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import ServerStatus
from tests.unit.caret_ls.provider_harness import Desk


@pytest.fixture
async def desk() -> Desk:
    fake = Desk()
    fake.open("a = 1\nb = |\n")
    return fake


def wait_ms(desk: Desk) -> float:
    """Return the delay after a key of a slow typist."""
    desk.debouncer.on_keystroke(desk.clock.now_s)
    wait_s = desk.debouncer.delay_s(desk.clock.now_s, is_invoked=False, is_fresh_line=False)
    return round(wait_s * 1000)


async def test_a_request_without_a_response_times_out() -> None:
    desk = Desk(max_response_s=0.05)
    desk.open("a = 1\nb = |\n")

    request = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.clock.now_s += 20.0
    async with asyncio.timeout(10):
        assert await request is None
    assert wait_ms(desk) > MIN_WAIT_MS, "the gateway must get fewer requests"
    assert desk.assistant.last_reason is SkipReason.OVERLOADED
    assert desk.statuses == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]
    assert desk.gateway.cancelled == ["1"]


async def test_a_late_response_increases_the_delay(desk: Desk) -> None:
    request = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.clock.now_s += 3.0
    desk.gateway.respond("1", "c")
    await request

    assert wait_ms(desk) > MIN_WAIT_MS


async def test_a_slow_request_cancelled_by_the_editor_increases_the_delay(desk: Desk) -> None:
    request = desk.request_suggestion()
    await desk.wait_for_request(1)
    desk.clock.now_s += 0.2
    desk.assistant.cancel("file:///nowhere/a.py")
    await asyncio.gather(request, return_exceptions=True)
    await asyncio.sleep(0)

    assert wait_ms(desk) == MIN_WAIT_MS + 50


async def test_requests_cancelled_at_once_do_not_change_the_delay(desk: Desk) -> None:
    for number, waited_s in enumerate((0.2, 0.1, 0.1, 0.1), start=1):
        request = desk.request_suggestion()
        await desk.wait_for_request(number)
        desk.clock.now_s += waited_s
        desk.assistant.cancel("file:///nowhere/a.py")
        await asyncio.gather(request, return_exceptions=True)
        await asyncio.sleep(0)

    assert wait_ms(desk) == MIN_WAIT_MS + 50

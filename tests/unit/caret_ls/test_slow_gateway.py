"""A gateway that responds late or never: no request waits forever, and it gets fewer requests."""

import asyncio

import pytest

from caret_ls.debounce import MIN_WAIT_MS
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import ServerStatus
from tests.unit.caret_ls.provider_harness import Desk


@pytest.fixture
async def desk() -> Desk:
    made = Desk()
    made.open("a = 1\nb = |\n")
    return made


def wait_ms(desk: Desk) -> float:
    """Return the wait after a key of a slow typist."""
    desk.debouncer.on_keystroke(desk.clock.now_s)
    wait_s = desk.debouncer.delay_s(desk.clock.now_s, is_invoked=False, is_fresh_line=False)
    return round(wait_s * 1000)


async def test_an_answer_that_never_comes_is_given_up() -> None:
    desk = Desk(max_answer_s=0.05)
    desk.open("a = 1\nb = |\n")

    asked = desk.asks()
    await desk.is_asked(1)
    desk.clock.now_s += 20.0
    async with asyncio.timeout(10):
        assert await asked is None
    assert wait_ms(desk) > MIN_WAIT_MS, "the gateway must get fewer requests"
    assert desk.assistant.last_reason is SkipReason.OVERLOADED
    assert desk.statuses == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]
    assert desk.gateway.taken_back == ["1"]


async def test_a_late_answer_is_asked_for_less_often(desk: Desk) -> None:
    asked = desk.asks()
    await desk.is_asked(1)
    desk.clock.now_s += 3.0
    desk.gateway.says("1", "c")
    await asked

    assert wait_ms(desk) > MIN_WAIT_MS


async def test_an_answer_that_was_not_waited_for_is_a_late_one(desk: Desk) -> None:
    asked = desk.asks()
    await desk.is_asked(1)
    desk.clock.now_s += 0.2
    desk.assistant.cancel("file:///nowhere/a.py")
    await asyncio.gather(asked, return_exceptions=True)
    await asyncio.sleep(0)

    assert wait_ms(desk) == MIN_WAIT_MS + 50


async def test_what_was_taken_back_at_once_says_nothing(desk: Desk) -> None:
    for number, waited_s in enumerate((0.2, 0.1, 0.1, 0.1), start=1):
        asked = desk.asks()
        await desk.is_asked(number)
        desk.clock.now_s += waited_s
        desk.assistant.cancel("file:///nowhere/a.py")
        await asyncio.gather(asked, return_exceptions=True)
        await asyncio.sleep(0)

    assert wait_ms(desk) == MIN_WAIT_MS + 50

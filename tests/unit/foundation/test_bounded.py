import asyncio

import pytest

from caret.foundation.concurrency.fast_timeout import run_with_timeout


class Door:
    """Work that tasks wait for; counts those that got through and those that timed out."""

    def __init__(self) -> None:
        self.opens = asyncio.Event()
        self.num_through = 0
        self.num_turned_away = 0

    async def pass_through(self) -> str:
        try:
            await self.opens.wait()
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.num_turned_away += 1
            raise
        self.num_through += 1
        return "through"


async def test_what_need_not_wait_sets_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ready() -> str:
        return "ready"

    monkeypatch.delattr(asyncio, "timeout")

    assert await run_with_timeout(1.0, ready()) == "ready"


async def test_what_waits_is_waited_for() -> None:
    door = Door()
    passing = asyncio.create_task(run_with_timeout(10.0, door.pass_through()))
    await asyncio.sleep(0)

    door.opens.set()

    assert await passing == "through"
    assert door.num_through == 1


async def test_what_waits_too_long_is_cancelled() -> None:
    door = Door()

    with pytest.raises(TimeoutError):
        await run_with_timeout(0.001, door.pass_through())

    assert door.num_turned_away == 1


async def test_a_cancel_reaches_what_is_waited_for_with_its_message() -> None:
    door = Door()
    passing = asyncio.create_task(run_with_timeout(10.0, door.pass_through()))
    await asyncio.sleep(0)

    passing.cancel("superseded")

    with pytest.raises(asyncio.CancelledError, match="superseded"):
        await passing
    assert door.num_turned_away == 1


async def test_work_may_go_on_after_a_cancel() -> None:
    async def stubborn() -> str:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(10.0)
        await asyncio.sleep(0.001)
        return "told"

    telling = asyncio.create_task(run_with_timeout(10.0, stubborn()))
    await asyncio.sleep(0)

    telling.cancel()

    assert await telling == "told"


@pytest.mark.parametrize("waits", [False, True])
async def test_what_goes_wrong_is_raised(waits: bool) -> None:
    async def broken() -> None:
        if waits:
            await asyncio.sleep(0)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await run_with_timeout(10.0, broken())

"""A timeout that sets a timer only if its work has to wait."""

import asyncio

import pytest

from caret.foundation.concurrency.fast_timeout import run_with_timeout


class Gate:
    """A gate that tasks wait for. Counts the tasks that passed and those that were cancelled."""

    def __init__(self) -> None:
        self.opens = asyncio.Event()
        self.num_passed = 0
        self.num_cancelled = 0

    async def wait(self) -> str:
        try:
            await self.opens.wait()
            await asyncio.sleep(0)  # the work waits a second time
        except asyncio.CancelledError:
            self.num_cancelled += 1
            raise
        self.num_passed += 1
        return "passed"


async def test_work_that_is_ready_sets_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def return_immediately() -> str:
        return "ready"

    monkeypatch.delattr(asyncio, "timeout")  # a timer would raise AttributeError

    assert await run_with_timeout(1.0, return_immediately()) == "ready"


async def test_the_result_of_waiting_work_is_returned() -> None:
    gate = Gate()
    task = asyncio.create_task(run_with_timeout(10.0, gate.wait()))
    await asyncio.sleep(0)

    gate.opens.set()

    assert await task == "passed"
    assert gate.num_passed == 1


async def test_work_that_takes_too_long_is_cancelled() -> None:
    gate = Gate()

    with pytest.raises(TimeoutError):
        await run_with_timeout(0.001, gate.wait())

    assert gate.num_cancelled == 1


async def test_cancellation_reaches_the_work_with_its_message() -> None:
    gate = Gate()
    task = asyncio.create_task(run_with_timeout(10.0, gate.wait()))
    await asyncio.sleep(0)

    task.cancel("superseded")

    with pytest.raises(asyncio.CancelledError, match="superseded"):
        await task
    assert gate.num_cancelled == 1


async def test_work_may_finish_after_a_cancellation() -> None:
    async def ignore_cancellation() -> str:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(10.0)
        await asyncio.sleep(0.001)
        return "done"

    task = asyncio.create_task(run_with_timeout(10.0, ignore_cancellation()))
    await asyncio.sleep(0)

    task.cancel()

    assert await task == "done"


@pytest.mark.parametrize("has_to_wait", [False, True])
async def test_an_exception_of_the_work_is_raised(has_to_wait: bool) -> None:
    async def fail() -> None:
        if has_to_wait:
            await asyncio.sleep(0)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await run_with_timeout(10.0, fail())

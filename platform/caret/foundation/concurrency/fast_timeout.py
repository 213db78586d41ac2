"""A timeout for operations that usually do not wait: the timer is set only once they do.

`asyncio.timeout` always sets one. That takes 10 us, which is more than most sends take.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

_Result = TypeVar("_Result")
_Steps = Generator[Any, Any, _Result]


async def run_with_timeout(seconds: float, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run `work` with a timeout; cancel what it waits for when time is up.

    Raises TimeoutError, and what `work` raises.
    """
    steps = work.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as done:
        result: _Result = done.value
        return result
    async with asyncio.timeout(seconds):
        return await _Continuation(waits_for, steps)


class _Continuation(Generic[_Result]):
    """The rest of a coroutine that has begun to wait."""

    def __init__(self, waits_for: object, steps: _Steps[_Result]) -> None:
        self._waits_for = waits_for
        self._steps = steps

    def __await__(self) -> _Steps[_Result]:
        return _going_on(self._waits_for, self._steps)


def _going_on(waits_for: object, steps: _Steps[_Result]) -> _Steps[_Result]:
    """Do the same as `yield from steps`, whose first yield was already consumed."""
    try:
        yield waits_for
    except BaseException as thrown:  # noqa: BLE001  # passed on to the waiting coroutine
        try:
            waits_for = steps.throw(thrown)
        except StopIteration as done:
            result: _Result = done.value
            return result
        return (yield from _going_on(waits_for, steps))
    return (yield from steps)

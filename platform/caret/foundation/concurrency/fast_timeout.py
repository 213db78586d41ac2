"""A timeout for operations that usually do not wait: it sets a timer only when the operation waits.

`asyncio.timeout` always sets a timer. This takes 10 microseconds. Most messages are sent in less.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

_Result = TypeVar("_Result")
_Steps = Generator[Any, Any, _Result]  # a coroutine's iterator; yields the futures it waits for


async def run_with_timeout(seconds: float, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run `work` with a timeout that begins when `work` waits for the first time.

    At the timeout, cancel the operation that `work` waits for. Raises TimeoutError, and all errors
    of `work`.
    """
    steps = work.__await__()
    try:
        pending = next(steps)
    except StopIteration as done:
        result: _Result = done.value
        return result
    async with asyncio.timeout(seconds):
        return await _Continuation(pending, steps)


class _Continuation(Generic[_Result]):
    """The rest of a coroutine that has begun to wait."""

    def __init__(self, pending: object, steps: _Steps[_Result]) -> None:
        self._pending = pending  # the future that the coroutine waits for
        self._steps = steps

    def __await__(self) -> _Steps[_Result]:
        return _resume(self._pending, self._steps)


def _resume(pending: object, steps: _Steps[_Result]) -> _Steps[_Result]:
    """Do the same as `yield from steps`; `pending` is what `steps` has already yielded."""
    try:
        yield pending
    except BaseException as thrown:  # noqa: BLE001  # passed on to the waiting coroutine
        try:
            pending = steps.throw(thrown)
        except StopIteration as done:
            result: _Result = done.value
            return result
        return (yield from _resume(pending, steps))
    return (yield from steps)

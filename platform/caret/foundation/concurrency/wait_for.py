"""Replaces `asyncio.wait_for` of Python 3.11, which can lose a cancellation (ADR 0116).

The awaited operation can end in the same step of the event loop in which the caller is cancelled.
Python 3.11 then returns the result and drops the cancellation. redis-py calls `asyncio.wait_for`
for each command, so a task could continue to run after it was cancelled.
"""

import asyncio
import sys
from collections.abc import Awaitable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def keep_cancellations() -> None:
    """Replace `asyncio.wait_for` in the whole process if Python is older than 3.12."""
    if sys.version_info < (3, 12):
        standard_library: Any = asyncio
        standard_library.wait_for = _wait_for


async def _wait_for(awaitable: Awaitable[_Result], timeout: float | None) -> _Result:
    """Await with a timeout in seconds (None: no timeout), as Python 3.12 does.

    Raises TimeoutError.
    """
    async with asyncio.timeout(timeout):
        return await awaitable

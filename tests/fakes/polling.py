"""Waiting for the effects of another task."""

import asyncio
from collections.abc import Callable


async def wait_until(condition: Callable[[], bool], *, timeout_s: float = 5.0) -> None:
    """Wait for the condition.

    Raises TimeoutError if it does not become true in time.
    """
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110  # the tested code has no event to wait for
            await asyncio.sleep(0.001)

"""The fake engine's controls: its fault, and the number of its running completions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import aiohttp

from tests.functional.gateway.gateway_stack import wait_until


async def set_fault(engine_url: str, fault: str) -> None:
    """Set the fault of later completions; `none` for none."""
    await _get(engine_url, f"/fault/{quote(fault)}")


@asynccontextmanager
async def held_engine(engine_url: str) -> AsyncIterator[None]:
    """Let long completions pause after their first text until the block ends.

    In the block, they can end only because a client cancels or disconnects.
    """
    await set_fault(engine_url, "held")
    try:
        yield
    finally:
        await set_fault(engine_url, "none")


async def is_idle(engine_url: str) -> bool:
    return await _get(engine_url, "/streams") == "0"


async def wait_until_busy(engine_url: str) -> None:
    """Wait until the engine has a completion."""

    async def is_busy() -> bool:
        return not await is_idle(engine_url)

    assert await wait_until(is_busy), "no request reached the engine"


async def _get(engine_url: str, path: str) -> str:
    async with aiohttp.ClientSession(engine_url) as session, session.get(path) as response:
        assert response.status == 200, path
        return await response.text()

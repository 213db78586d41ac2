"""Values from vLLM's /metrics."""

from typing import Final

import aiohttp

_RUNNING: Final = "vllm:num_requests_running"


async def num_running(engine_url: str) -> int:
    """Return the number of requests that the engine is running now."""
    async with aiohttp.ClientSession() as session, session.get(f"{engine_url}/metrics") as response:
        text = await response.text()
    values = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(_RUNNING)]
    return int(sum(float(value) for value in values))

"""Values from vLLM's /metrics."""

from typing import Final

import aiohttp

_RUNNING: Final = "vllm:num_requests_running"


async def num_running(engine_url: str) -> int:
    """Return the number of requests that the engine is running now."""
    return int(await read_metric(engine_url, _RUNNING))


async def read_metric(engine_url: str, name: str) -> float:
    """Return the sum of a metric's samples; 0 if the engine does not have it."""
    async with aiohttp.ClientSession() as session, session.get(f"{engine_url}/metrics") as response:
        text = await response.text()
    samples = (line.rpartition(" ") for line in text.splitlines())
    # A line is the metric's name, labels in braces, and the value.
    return sum(float(value) for series, _, value in samples if series.partition("{")[0] == name)

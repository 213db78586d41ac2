"""A real gateway process sends warm-ups to a fake engine, which records its requests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.benchmarks.installation import create_home
from tests.functional.gateway.gateway_stack import (
    Frame,
    Site,
    request_completion,
    start_site,
    wait_until,
)

_CONTEXT: Frame = {
    "path": "shop/main.py",
    "language": "python",
    "files": [{"path": "shop/other.py", "text": "def area(self):\n    return self.x\n" * 60}],
    "repository": {"name": "shop"},
}
_COMPLETION: Frame = {"mode": "inline", "prefix": "a = ", "suffix": "\n", "max_tokens": 4}
_USAGE = {"completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}


@dataclass
class Engine:
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        choice = {"index": 0, "text": "x", "finish_reason": "length"}
        for event in ({"choices": [choice], "usage": _USAGE}, {"choices": [], "usage": _USAGE}):
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    async def wait_for_requests(self, count: int) -> None:
        async def have_arrived() -> bool:
            return len(self.requests) >= count

        assert await wait_until(have_arrived), f"{len(self.requests)} of {count} requests arrived"


@asynccontextmanager
async def _run_engine(engine: Engine) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/completions", engine.complete)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def engine() -> Engine:
    return Engine()


@pytest.fixture
async def site(engine: Engine) -> AsyncIterator[Site]:
    async with _run_engine(engine) as url:
        with create_home() as home:
            context = start_site(home, url)
            # In a thread: the gateway queries this event loop's engine while it starts.
            site = await asyncio.to_thread(context.__enter__)
            try:
                yield site
            finally:
                await asyncio.to_thread(context.__exit__, None, None, None)


async def _wait_for_warm_ups(site: Site, count: int) -> None:
    async def have_ended() -> bool:
        samples = parse_metrics(await site.metrics())
        return samples.sum("caret_warmups_total", outcome="warmed") == count

    assert await wait_until(have_ended), "not all warm-ups have ended"


async def test_opening_a_file_and_the_first_request_each_cause_a_warm_up_without_a_usage_record(
    site: Site, engine: Engine
) -> None:
    async with site.stream() as stream:
        await stream.send({"type": "file_opened", "text": "a = 1\n", **_CONTEXT})
        # Until its end. A request would cancel a warm-up that runs, and it would be repeated.
        await _wait_for_warm_ups(site, 1)
        _, done = await request_completion(stream, {**_COMPLETION, **_CONTEXT, "id": "1"})
        await _wait_for_warm_ups(site, 2)

    file_warm_up, completion, repository_warm_up = engine.requests
    warmed = file_warm_up["prompt"]
    # Both warm-ups have the beginning of the completion's prompt.
    assert warmed == completion["prompt"][: len(warmed)] == repository_warm_up["prompt"]
    assert file_warm_up["max_tokens"] == repository_warm_up["max_tokens"] == 1
    # The engine serves requests with lower numbers first.
    assert file_warm_up["priority"] == repository_warm_up["priority"] > completion["priority"]
    assert file_warm_up["cache_salt"] == completion["cache_salt"]
    assert await site.num_records() == 1
    (record,) = await site.records_after(0)
    assert record.request_id == done["meta"]["request_id"]


async def test_warm_ups_of_two_tenants_use_separate_cache_namespaces(
    site: Site, engine: Engine
) -> None:
    async with site.stream(site.acme_key) as acme, site.stream(site.globex_key) as globex:
        for stream in (acme, globex):
            await stream.send({"type": "file_opened", "text": "a = 1\n", **_CONTEXT})
        await engine.wait_for_requests(2)

    acme_request, globex_request = engine.requests
    assert acme_request["prompt"] == globex_request["prompt"]
    assert acme_request["cache_salt"] != globex_request["cache_salt"]

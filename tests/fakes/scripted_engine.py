"""An engine that answers each completion with one text and reports the metrics that a test sets."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

_HOLD_POLL_S = 0.01
_MAX_BODY_BYTES = 64 * 1024 * 1024  # aiohttp's default, 1 MiB, is too small for a long prompt


@dataclass
class ScriptedEngine:
    url: str = ""
    wait_s: float = 0.0  # before a completion's first token
    is_held: bool = False  # while it is set, no completion gets its first token
    metrics: dict[str, float] = field(default_factory=dict)  # by vLLM's names, without the prefix
    cached_tokens: int = 0
    host: str = "127.0.0.1"
    port: int = 0  # 0: any free port
    block_size: int | None = None  # None: it does not report one
    root: str = ""  # in its list of models; "": it has no such list, and responds with 404
    text: str = "x"  # of each completion
    finish_reason: str = "length"
    requests: list[dict[str, Any]] = field(default_factory=list)  # bodies of completions

    @property
    def num_completions(self) -> int:
        return len(self.requests)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        await asyncio.sleep(self.wait_s)
        while self.is_held:  # noqa: ASYNC110  # the test sets it in another thread
            await asyncio.sleep(_HOLD_POLL_S)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        choice = {"index": 0, "text": self.text, "finish_reason": self.finish_reason}
        details = {"cached_tokens": min(self.cached_tokens, len(body["prompt"]))}
        usage = {"completion_tokens": 1, "prompt_tokens_details": details}
        for event in ({"choices": [choice], "usage": usage}, {"choices": [], "usage": usage}):
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    async def report_metrics(self, _request: web.Request) -> web.Response:
        metrics = "".join(f"vllm:{name} {value}\n" for name, value in self.metrics.items())
        if self.block_size is not None:
            metrics += f'vllm:cache_config_info{{block_size="{self.block_size}"}} 1.0\n'
        return web.Response(text=metrics)

    async def list_models(self, _request: web.Request) -> web.Response:
        if not self.root:
            raise web.HTTPNotFound
        return web.json_response({"data": [{"id": "demo", "root": self.root}]})

    async def report_health(self, _request: web.Request) -> web.Response:
        return web.Response()


@contextmanager
def scripted_engine(**fields: Any) -> Iterator[ScriptedEngine]:
    """Run the engine in its own thread, because the test may have no event loop."""
    engine, loop = ScriptedEngine(**fields), asyncio.new_event_loop()
    started = threading.Event()
    thread = threading.Thread(target=_serve, args=(engine, loop, started), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield engine
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def _serve(
    engine: ScriptedEngine, loop: asyncio.AbstractEventLoop, started: threading.Event
) -> None:
    asyncio.set_event_loop(loop)
    application = web.Application(client_max_size=_MAX_BODY_BYTES)
    application.router.add_post("/v1/completions", engine.complete)
    application.router.add_get("/metrics", engine.report_metrics)
    application.router.add_get("/health", engine.report_health)
    application.router.add_get("/v1/models", engine.list_models)
    runner = web.AppRunner(application)
    loop.run_until_complete(runner.setup())
    site = web.TCPSite(runner, engine.host, engine.port)
    loop.run_until_complete(site.start())
    engine.url = "http://{}:{}".format(*runner.addresses[0])
    started.set()
    loop.run_forever()
    loop.run_until_complete(runner.cleanup())
    loop.close()

"""An engine that continues a known text from the point that the prompt has reached.

It writes one token a millisecond, records its requests, and can close the connection early.
"""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

_TOKEN_S = 0.001


@dataclass
class ContinuationEngine:
    token_ids: Sequence[int]  # of the whole text
    texts: Sequence[str]  # the text that each token adds
    host: str
    url: str = ""
    # The engine closes the connection after this many tokens of a completion; None: never.
    disconnect_after: int | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        begin = self._count_known_tokens(body["prompt"])
        end = min(len(self.texts), begin + body["max_tokens"])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(begin, end):
            if number - begin == self.disconnect_after:
                assert request.transport is not None
                request.transport.close()
                return response
            finish_reason = None if number + 1 < end else "length"
            choice = {"index": 0, "text": self.texts[number], "finish_reason": finish_reason}
            usage = {"completion_tokens": number + 1 - begin}
            await _send_event(response, {"choices": [choice], "usage": usage})
            await asyncio.sleep(_TOKEN_S)
        # As if the prefix cache had contained the whole prompt.
        details = {"cached_tokens": len(body["prompt"])}
        usage_at_end = {"completion_tokens": end - begin, "prompt_tokens_details": details}
        await _send_event(response, {"choices": [], "usage": usage_at_end})
        await response.write(b"data: [DONE]\n\n")
        return response

    def _count_known_tokens(self, prompt: list[int]) -> int:
        """Return the length of the longest beginning of the text with which the prompt ends."""
        counts = range(len(self.token_ids), 0, -1)
        return next((n for n in counts if prompt[-n:] == list(self.token_ids[:n])), 0)

    async def report_health(self, _request: web.Request) -> web.Response:
        return web.Response()


async def _send_event(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")


@contextmanager
def running_continuation_engine(engine: ContinuationEngine) -> Iterator[ContinuationEngine]:
    """Run the engine in its own thread."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    thread = threading.Thread(target=_serve, args=(engine, loop, started), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield engine
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def _serve(
    engine: ContinuationEngine, loop: asyncio.AbstractEventLoop, started: threading.Event
) -> None:
    asyncio.set_event_loop(loop)
    application = web.Application()
    application.router.add_post("/v1/completions", engine.complete)
    application.router.add_get("/health", engine.report_health)
    runner = web.AppRunner(application)
    loop.run_until_complete(runner.setup())
    site = web.TCPSite(runner, engine.host, 0)
    loop.run_until_complete(site.start())
    engine.url = "http://{}:{}".format(*runner.addresses[0])
    started.set()
    loop.run_forever()
    loop.run_until_complete(runner.cleanup())
    loop.close()

"""A gateway that serves only chats, without WebSockets. A test sends the parts of each answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

_HEADERS = {"content-type": "text/event-stream"}


class ChatGateway:
    """Streams the parts that a test sends.

    While `error` is set, answers with status 403 and this error code instead.
    """

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.error: str | None = None
        self.num_cancelled = 0
        self._parts: asyncio.Queue[str | None] = asyncio.Queue()  # None: the end

    def send(self, *texts: str) -> None:
        for text in texts:
            self._parts.put_nowait(text)

    def end(self) -> None:
        self._parts.put_nowait(None)

    async def respond(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        if self.error is not None:
            return web.json_response({"error": {"code": self.error}}, status=403)
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        try:
            while (text := await self._parts.get()) is not None:
                await response.write(_event({"content": text}, finish_reason=None))
            await response.write(_event({}, finish_reason="stop") + b"data: [DONE]\n\n")
        except (asyncio.CancelledError, ConnectionError):
            self.num_cancelled += 1
            raise
        return response


def _event(delta: dict[str, str], finish_reason: str | None) -> bytes:
    choice = {"delta": delta, "finish_reason": finish_reason, "index": 0}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


@asynccontextmanager
async def chat_gateway() -> AsyncIterator[ChatGateway]:
    gateway = ChatGateway()
    application = web.Application()
    application.router.add_post("/v1/chat/completions", gateway.respond)
    # `handler_cancellation`: the handler of a request is cancelled when its client disconnects.
    runner = web.AppRunner(application, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    gateway.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield gateway
    finally:
        await runner.cleanup()

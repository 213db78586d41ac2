"""Responses without chunks for HTTP/1.0 clients, and a deadline for clients that do not read.

HTTP/1.0 has no chunked encoding: the end of the connection ends the body. uvicorn sends every body
without a length in chunks, even to HTTP/1.0 clients. It does close the connection after each
response to an HTTP/1.0 request.
"""

import asyncio

from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from caret.foundation.web.connections import REFUSED


def adapt_to_version(app: ASGI3Application, cycle: RequestResponseCycle) -> ASGI3Application:
    """Return the application; for an HTTP/1.0 request, make it respond without chunks."""
    if cycle.scope["http_version"] != "1.0":
        return app

    async def respond(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        has_length = True

        async def send_unframed(message: ASGISendEvent) -> None:
            nonlocal has_length
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message.get("headers", ())}
                has_length = b"content-length" in names
                if not has_length:
                    cycle.chunked_encoding = False
            elif message["type"] == "http.response.body" and not has_length:
                # uvicorn raises an error unless a body has the length that it expects. So let it
                # expect exactly this part.
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, send_unframed)

    return respond


class SendDeadline:
    """Aborts a connection whose client does not read what was written to it."""

    def __init__(self, transport: asyncio.Transport, timeout_s: float) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._timeout_s, self._on_late)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_late(self) -> None:
        self._timer = None
        REFUSED.labels("send_late").inc()
        self._transport.abort()

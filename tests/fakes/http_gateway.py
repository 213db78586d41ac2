"""The gateway's application over a data plane of fakes, called with HTTP requests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from inference.consumers.application import GatewayApplication
from inference.consumers.base import Headers
from inference.pipeline import DataPlane
from tests.fakes.asgi import FakeServer, http_scope
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.polling import wait_until

DEADLINE_S: Final = 5
ORIGIN: Final = "https://caret.example.com"  # the only origin that the gateway allows


@asynccontextmanager
async def application(gateway: FakeGateway) -> AsyncIterator[GatewayApplication]:
    """Start the application, and stop it at the end of the block."""

    @asynccontextmanager
    async def open_plane() -> AsyncIterator[DataPlane]:
        yield gateway.plane

    app = GatewayApplication(open_plane, allowed_origins=frozenset([ORIGIN]))
    server = FakeServer({"type": "lifespan"})
    server.queue_message("lifespan.startup")
    running = asyncio.create_task(app(server.scope, server.receive, server.send))
    await wait_until(lambda: bool(server.messages))
    try:
        yield app
    finally:
        server.queue_message("lifespan.shutdown")
        await running


async def send_request(
    gateway: FakeGateway,
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    key: str | None = KEY.text,
    headers: Headers | None = None,
) -> FakeServer:
    """Send a request to the application, which runs only for this request.

    A `body` of bytes is sent unchanged, any other as JSON.
    """
    server = FakeServer(http_scope(path, key=key, method=method, headers=headers))
    server.queue_message("http.request", body=body if isinstance(body, bytes) else _json(body))
    async with application(gateway) as app, asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)
    return server


def read_engine_prompt(gateway: FakeGateway) -> str:
    """Return the prompt that reached the engine, as text."""
    (request,) = gateway.engine.requests
    (writer,) = set(gateway.plane.prompt_writers.values())
    tokenizer = writer.tokenizer._raw  # no public method decodes token IDs
    return str(tokenizer.decode(request.token_ids, skip_special_tokens=False))


def _json(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()

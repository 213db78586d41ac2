"""A fake gateway with a real WebSocket server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from caret_ls.frames import Frame


class Gateway:
    """Records the frames that it receives, and responds to them as the test has set."""

    def __init__(self) -> None:
        self.received: list[Frame] = []
        self.headers: list[dict[str, str]] = []
        self.sockets: list[ServerConnection] = []
        self.refusal: int | None = None  # HTTP status of the next handshakes; None: accepted
        # Responses to `complete` frames: an edit in the mode `edit`, a suggestion in other modes.
        # None: no response.
        self.edit: Frame | None = None
        self.suggestion: str | None = None
        self.modes: list[str] | None = None  # in policies; None: policy frames get no response
        self.url = ""

    async def serve(self, socket: ServerConnection) -> None:
        self.sockets.append(socket)
        async for text in socket:
            self.received.append(frame := json.loads(text))
            if frame["type"] == "policy" and self.modes is not None:
                repository = frame["repository"]
                await self.send(type="policy", repository=repository, modes=self.modes)
            elif frame["type"] == "complete" and frame.get("mode") == "edit":
                if self.edit is not None:
                    await self.respond_with_edit(frame["id"], self.edit)
            elif frame["type"] == "complete" and self.suggestion is not None:
                await self.respond(frame["id"], self.suggestion)

    def check(self, socket: ServerConnection, request: Request) -> Response | None:
        """Record the headers of a handshake. Return None to accept it, or else the refusal."""
        self.headers.append(dict(request.headers.raw_items()))
        return None if self.refusal is None else socket.respond(self.refusal, "no\n")

    async def send(self, **frame: Any) -> None:
        await self.sockets[-1].send(json.dumps(frame))

    async def respond(self, id: str, text: str) -> None:
        await self.send(type="delta", id=id, text=text)
        meta = {"request_id": f"request-{id}"}
        await self.send(type="done", id=id, finish_reason="stop", meta=meta)

    async def respond_with_edit(self, id: str, edit: Frame) -> None:
        meta = {"request_id": f"request-{id}"}
        await self.send(type="done", id=id, finish_reason="stop", meta=meta, edit=edit)

    def requests(self, mode: str) -> list[Frame]:
        return [frame for frame in self.received if frame.get("mode") == mode]

    def outcomes(self, event: str) -> list[Frame]:
        return [frame for frame in self.received if frame.get("event") == event]


@asynccontextmanager
async def gateway() -> AsyncIterator[Gateway]:
    fake = Gateway()
    server: Server = await serve(
        fake.serve,
        "127.0.0.1",
        0,
        process_request=fake.check,
        subprotocols=["caret.v1"],  # type: ignore[list-item]  # its Subprotocol is a NewType
    )
    async with server:
        fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield fake

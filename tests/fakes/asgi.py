"""The server's side of ASGI: the messages that a client sends, and the application's responses."""

import asyncio
import json
from typing import Any

from inference.consumers.base import Headers, Message, Scope


class FakeServer:
    """One exchange with the application.

    `queue_message` adds a message for the application to receive. `messages` lists the messages
    that the application has sent.
    """

    def __init__(self, scope: Scope, *, breaks_at: str | None = None) -> None:
        """`breaks_at` is the type of the response message at which the client has disconnected."""
        self.scope = scope
        self.messages: list[Message] = []
        self.num_received = 0  # messages that the application has received
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._breaks_at = breaks_at

    def queue_message(self, kind: str, **fields: Any) -> None:
        self._incoming.put_nowait({"type": kind, **fields})

    async def receive(self) -> Message:
        message = await self._incoming.get()
        self.num_received += 1
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == self._breaks_at:
            raise OSError
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def error_code(self) -> str:
        body = json.loads(self.messages[1]["body"])
        # Responses in OpenAI's format wrap the error: {"error": {"code": ...}}.
        return str(body.get("error", body)["code"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])


def http_scope(
    path: str, *, key: str | None = None, method: str = "POST", headers: Headers | None = None
) -> Scope:
    bearer = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [*bearer, *(headers or [])],
    }


def websocket_scope(key: str) -> Scope:
    return {
        "type": "websocket",
        "path": "/v1/stream",
        "headers": [(b"authorization", f"Bearer {key}".encode())],
        "subprotocols": ["caret.v1"],
    }

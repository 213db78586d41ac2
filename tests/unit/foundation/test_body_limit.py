"""Bodies over the limit are rejected while they arrive."""

from collections.abc import Mapping
from typing import Any

from caret.foundation.web.body_limit import BodyLimitMiddleware, Receive, Send


class Server:
    """Acts as the ASGI server: provides the chunks of a body, and records the response."""

    def __init__(self, *chunks: bytes) -> None:
        self.unread_chunks = list(chunks)
        self.sent: list[Mapping[str, Any]] = []

    async def receive(self) -> Mapping[str, Any]:
        chunk = self.unread_chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(self.unread_chunks)}

    async def send(self, event: Mapping[str, Any]) -> None:
        self.sent.append(event)


async def read_all(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Act as an application that reads the whole body before it responds."""
    while (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def test_a_body_within_the_limit_is_accepted() -> None:
    server = Server(b"12345", b"67890")

    await BodyLimitMiddleware(read_all, max_bytes=10)({"type": "http"}, server.receive, server.send)

    assert server.sent[0]["status"] == 200


async def test_a_body_over_the_limit_is_rejected_while_it_arrives() -> None:
    server = Server(b"12345", b"67890", b"1", b"never read")

    await BodyLimitMiddleware(read_all, max_bytes=10)({"type": "http"}, server.receive, server.send)

    # The response starts with its status; the second event is its body.
    assert [event.get("status") for event in server.sent] == [413, None]
    assert server.unread_chunks == [b"never read"]


async def test_a_websocket_is_not_limited() -> None:
    server = Server(b"12345678901")

    await BodyLimitMiddleware(read_all, max_bytes=10)(
        {"type": "websocket"}, server.receive, server.send
    )

    assert server.sent[0]["status"] == 200

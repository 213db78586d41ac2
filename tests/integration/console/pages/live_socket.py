"""Open the WebSocket of the console's live figures, as a browser does."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from caret.asgi import console

OWN_ORIGIN = b"http://testserver"


def session_key_of(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


class Socket:
    """A browser's end of the WebSocket, connected to the console in this process."""

    def __init__(self, session: str, origin: bytes | None, path: str) -> None:
        cookie = f"{settings.SESSION_COOKIE_NAME}={session}".encode()
        headers = [(b"host", b"testserver"), (b"cookie", cookie)]
        headers += [] if origin is None else [(b"origin", origin)]
        scope = {
            "type": "websocket",
            "scheme": "ws",
            "path": path,
            "query_string": b"",
            "headers": headers,
            "client": ["192.0.2.7", 1],
            "subprotocols": [],
        }
        # asgiref has no types for this class.
        self._app: Any = ApplicationCommunicator(console, scope)  # type: ignore[no-untyped-call]

    async def next(self) -> dict[str, Any]:
        """Wait for the next ASGI event that the console sends."""
        event: dict[str, Any] = await self._app.receive_output(timeout=300)
        return event

    async def connect(self) -> bool:
        """Connect. Return whether the console has accepted the socket."""
        await self._app.send_input({"type": "websocket.connect"})
        return bool((await self.next())["type"] == "websocket.accept")

    async def leave(self) -> None:
        """Disconnect, as a browser does that leaves the page, and wait until the console ends."""
        await self._app.send_input({"type": "websocket.disconnect", "code": 1001})
        await self._app.wait(timeout=300)


@asynccontextmanager
async def socket(
    session: str, *, origin: bytes | None = OWN_ORIGIN, path: str = "/live"
) -> AsyncIterator[Socket]:
    """Yield a socket that is not connected yet, and leave it at the end of the block."""
    new_socket = Socket(session, origin, path)
    yield new_socket
    await new_socket.leave()


async def read_first_message(new_socket: Socket) -> dict[str, str]:
    """Connect, and return the first figures."""
    assert await new_socket.connect()
    message: dict[str, str] = json.loads((await new_socket.next())["text"])
    return message

"""The base class of all consumers."""

from collections.abc import Awaitable, Callable
from typing import Any

from channels.consumer import AsyncConsumer, get_handler_name
from channels.exceptions import StopConsumer

from inference.gateway.protocol.user_agent import detect_editor

Header = tuple[bytes, bytes]
Headers = list[Header]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]
Scope = dict[str, Any]


class DataPlaneConsumer(AsyncConsumer):  # type: ignore[misc]  # channels publishes no types
    """A consumer that never touches a database, and hears of nobody but its client.

    Channels closes old database connections before each message, by a hop to a thread that all
    connections share, and holds a task for each channel that a message may come from; the data
    plane has neither, so a message goes straight to its handler.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        self.scope, self.base_send = scope, send
        try:
            self.on_connect()
            while True:
                await self.dispatch(await receive())
        except StopConsumer:
            return
        finally:
            await self.release()

    def on_connect(self) -> None:
        """Called once, when the scope is known and no message has come yet."""

    async def release(self) -> None:
        """Ends all that the exchange still holds. Called once, however the exchange ended."""
        raise NotImplementedError

    async def dispatch(self, message: Message) -> None:
        await getattr(self, get_handler_name(message))(message)


def header(scope: Scope, name: bytes) -> str | None:
    """The header's value, of several the first; header names are lower case in ASGI."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def read_editor(scope: Scope) -> str:
    """Return the editor that X-Caret-Editor names, else the one that the User-Agent names."""
    return detect_editor(header(scope, b"x-caret-editor"), header(scope, b"user-agent"))


def read_bearer_key(scope: Scope) -> str | None:
    """The API key of the Authorization header; never one in a URL."""
    scheme, _, credentials = (header(scope, b"authorization") or "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" and credentials.strip() else None


def client_address(scope: Scope) -> str | None:
    """As uvicorn gives it, which has put what a trusted proxy says in its place; None: a peer on a
    Unix socket."""
    client = scope.get("client")
    return str(client[0]) if client else None


def read_api_key(scope: Scope) -> str | None:
    """As bearer_key, or of the `api-key` header, by which clients made for Azure send it."""
    return read_bearer_key(scope) or header(scope, b"api-key") or None

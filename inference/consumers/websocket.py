"""`/v1/stream`: the WebSocket protocol `caret.v1` (platform/docs/protocol.md)."""

import asyncio
from contextlib import ExitStack, suppress
from functools import partial
from typing import Final

from channels.exceptions import StopConsumer

from caret.foundation.concurrency.fast_timeout import run_with_timeout
from caret.foundation.web.connection_draining import SERVICE_RESTART
from caret.foundation.web.connections import mark_connection_authenticated
from inference.completion.request import Principal
from inference.completion.response_writer import MAX_SEND_S, ClientDisconnected
from inference.completion.suggestion_edit import SuggestionEdit
from inference.consumers.base import (
    DataPlaneConsumer,
    Message,
    client_address,
    header,
    read_bearer_key,
    read_editor,
)
from inference.errors import BadRequest, CompletionError, ForbiddenRequest
from inference.gateway.authenticate import authenticate, find_key_error
from inference.gateway.protocol.connection import Connection
from inference.gateway.protocol.connection_backend import ConnectionBackend, StreamCaller
from inference.gateway.protocol.frames import SUBPROTOCOL, ErrorFrame, ServerFrame, encode_frame
from inference.pipeline import DataPlane, serve

KEY_SUBPROTOCOL: Final = "caret.key."  # browsers cannot set headers; the key follows the dot
# The close code of platform/docs/protocol.md: the key or its tenant is no longer active.
_CLOSE_KEY_ENDED: Final = 4401


class WebSocketConsumer(DataPlaneConsumer):
    def __init__(
        self, plane: DataPlane, allowed_origins: frozenset[str], drain_s: float = 0.0
    ) -> None:
        """`drain_s`: seconds for which completions may continue when this process shuts down."""
        self._plane = plane
        self._allowed_origins = allowed_origins
        self._drain_s = drain_s
        self._connection: Connection | None = None
        self._key_watch = ExitStack()  # watches the API key until `release`
        self._closing: asyncio.Task[None] | None = None

    async def websocket_connect(self, _message: Message) -> None:
        try:
            key_text = self._check_handshake()
            principal = self._find_principal(key_text)
        except CompletionError as error:
            await self._deny_handshake(error)
            raise StopConsumer from None
        watching = self._plane.snapshots.watch_key(
            principal.credential.key_id, partial(self._on_key_end, key_text)
        )
        try:
            self._key_watch.enter_context(watching)
        except CompletionError as error:  # the key has too many connections
            await self._deny_handshake(error)
            raise StopConsumer from None
        mark_connection_authenticated(self.scope)
        backend = ConnectionBackend(
            serve=partial(serve, self._plane),
            append_record=self._plane.recorder.journal.append,
            warm_up=self._plane.warmup_queue.add_warmup,
            on_edited=partial(self._on_edited, key_text),
            find_principal=partial(self._find_principal, key_text),
            find_modes=self._plane.pool_selector.find_modes,
            record_late_outcome=self._plane.late_outcomes.record,
            clock=self._plane.clock,
        )
        address, editor = client_address(self.scope), read_editor(self.scope)
        caller = StreamCaller(principal, key_text, address, editor)
        self._connection = Connection(backend, caller, self._send_frame)
        await self.send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})

    async def websocket_receive(self, message: Message) -> None:
        if self._connection is None:
            return
        try:
            await self._connection.on_frame(message.get("text"))
        except ClientDisconnected:  # the client sends but does not read
            raise StopConsumer from None

    async def websocket_restart(self, _message: Message) -> None:
        """Close because this process shuts down: when nothing is in flight, or after `drain_s`."""
        if self._connection is None:
            raise StopConsumer
        self._closing = asyncio.create_task(self._close_for_restart(self._connection))

    async def _close_for_restart(self, connection: Connection) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._drain_s):
                await connection.drain()
        await connection.close()
        await self.send(
            {"type": "websocket.close", "code": SERVICE_RESTART, "reason": "connect again"}
        )

    async def websocket_disconnect(self, _message: Message) -> None:
        raise StopConsumer

    async def release(self) -> None:
        self._key_watch.close()
        if self._connection is not None:
            await self._connection.close()

    def _on_edited(self, key_text: str, suggestion_edit: SuggestionEdit) -> None:
        """Pass a suggestion as the user edited it to content capture.

        The key is authenticated again, because its rights and its user's consent may have changed
        since the handshake.
        """
        if self._plane.content_capture is None:
            return
        try:
            principal = self._find_principal(key_text)
        except CompletionError:
            return
        self._plane.content_capture.on_edited(principal, suggestion_edit)

    def _find_principal(self, key_text: str) -> Principal:
        """Authenticate the key as of now. Raises UnauthenticatedRequest, ForbiddenRequest."""
        return authenticate(
            self._plane.snapshots,
            key_text,
            now_ms=self._plane.clock.now_ms(),
            address=client_address(self.scope),
        )

    def _check_handshake(self) -> str:
        """Return the API key, or "" without one. Raises BadRequest, ForbiddenRequest."""
        subprotocols: list[str] = self.scope["subprotocols"]
        if SUBPROTOCOL not in subprotocols:
            raise BadRequest(
                "wrong_subprotocol", f"The client must offer the subprotocol {SUBPROTOCOL}."
            )
        # Only browsers send an Origin. A foreign page must not use a key that it obtained.
        origin = header(self.scope, b"origin")
        if origin is not None and origin not in self._allowed_origins:
            raise ForbiddenRequest("origin_not_allowed", "This origin is not allowed.")
        keys = (name for name in subprotocols if name.startswith(KEY_SUBPROTOCOL))
        return read_bearer_key(self.scope) or next(keys, "").removeprefix(KEY_SUBPROTOCOL)

    async def _deny_handshake(self, error: CompletionError) -> None:
        """Reject the handshake with an HTTP response that explains why."""
        frame = ErrorFrame(id="", code=error.code, message=error.message)
        headers = [(b"content-type", b"application/json")]
        await self.send(
            {
                "type": "websocket.http.response.start",
                "status": error.http_status,
                "headers": headers,
            }
        )
        await self.send(
            {"type": "websocket.http.response.body", "body": encode_frame(frame).encode()}
        )

    async def _send_frame(self, frame: ServerFrame) -> None:
        """Send a frame. Raises ClientDisconnected."""
        try:
            message = {"type": "websocket.send", "text": encode_frame(frame)}
            await run_with_timeout(MAX_SEND_S, self.send(message))
        except (OSError, RuntimeError, TimeoutError):
            # uvicorn reports a closed socket by its own ClientDisconnected (an OSError), or by a
            # RuntimeError after the close.
            raise ClientDisconnected from None

    def _on_key_end(self, key_text: str) -> None:
        """End the connection and its completions: the key or its tenant is no longer active."""
        error = find_key_error(
            self._plane.snapshots,
            key_text,
            now_ms=self._plane.clock.now_ms(),
            address=client_address(self.scope),
        )
        self._closing = asyncio.create_task(self._close_for_key(error))

    async def _close_for_key(self, error: CompletionError) -> None:
        if self._connection is not None:
            await self._connection.close(error)
        # The reason of a close frame can have 123 bytes. Codes fit; some messages are longer.
        await self.send({"type": "websocket.close", "code": _CLOSE_KEY_ENDED, "reason": error.code})

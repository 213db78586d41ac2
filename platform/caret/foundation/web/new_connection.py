"""A connection from its opening to its first bytes, before the HTTP parser is created.

Accepting a connection without a parser takes a third of the time that it takes with one. If each
connection had a parser, a thousand clients that connect at once and send nothing would delay the
others by over 100 ms.

    opened > NewConnection > first bytes > LimitedHttp > response > ...

If the first bytes of a connection contain the headers of exactly one request, the parser starts
immediately. Other connections start a few at a time. So clients that send a part of their headers,
or many requests at once, do not delay single requests.
"""

import asyncio
from typing import Any, Final, cast

from uvicorn.server import ServerState

from caret.foundation.web.connections import ConnectionSlot, TooManyConnections
from caret.foundation.web.limited_http import LimitedHttp, ServerConfig

_END_OF_HEADERS: Final = b"\r\n\r\n"


class NewConnection(asyncio.Protocol):
    """Admits a connection within the limits, and closes it if it sends nothing."""

    __slots__ = (
        "_app_state",
        "_config",
        "_deadline",
        "_first_bytes",
        "_headers_due_at",
        "_loop",
        "_server_state",
        "_slot",
        "_transport",
    )

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,  # uvicorn passes it by this name
    ) -> None:
        self._config = config
        self._server_state = server_state
        self._app_state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        self._slot: ConnectionSlot | None = None  # None: not admitted
        self._first_bytes = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass
        peer = transport.get_extra_info("peername")
        # A client on a Unix socket has no address. It counts as a trusted proxy.
        address = str(peer[0]) if isinstance(peer, tuple) else None
        if address is not None and address in self._config.trusted_proxies:
            address = None
        try:
            # `close` is the transport's method, because a parser replaces this object later.
            self._slot = self._config.client_connections.admit(address, close=self._transport.abort)
        except TooManyConnections:
            self._transport.abort()
            return
        self._server_state.connections.add(self)  # type: ignore[arg-type]  # it has `shutdown`
        self._headers_due_at = self._loop.time() + self._config.limits.header_timeout_s
        self._deadline = self._loop.call_at(self._headers_due_at, self._transport.close)

    def data_received(self, data: bytes) -> None:
        self._first_bytes = data
        if data.count(_END_OF_HEADERS) == 1:
            self._start_http()
        else:
            self._transport.pause_reading()
            self._config.paced_starts.schedule(self._start_http)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._slot is None:
            return
        if self._first_bytes:
            self._config.paced_starts.drop(self._start_http)
        self._stop_waiting()
        self._slot.release()

    def shutdown(self) -> None:
        """Close the connection; uvicorn calls this when the server ends."""
        self._transport.close()

    def _start_http(self) -> None:
        assert self._slot is not None
        self._stop_waiting()
        http = LimitedHttp(
            self._config,
            self._server_state,
            self._app_state,
            self._loop,
            slot=self._slot,
            headers_due_at=self._headers_due_at,
        )
        self._transport.set_protocol(http)
        http.connection_made(self._transport)
        self._transport.resume_reading()
        http.data_received(self._first_bytes)

    def _stop_waiting(self) -> None:
        self._deadline.cancel()
        self._server_state.connections.discard(self)

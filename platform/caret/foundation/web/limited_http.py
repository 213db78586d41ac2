"""HTTP/1.x with the limits of `ServerLimits`, on top of uvicorn's httptools protocol.

uvicorn limits neither the size nor the time of headers, and waits forever for a client that does
not read. If a request exceeds a limit, this protocol responds with 431, 408, 429 or 400, unless a
response has begun, and closes the connection. The limits on time, in the order of a connection:

    connection > header_timeout_s > headers > body_timeout_s > body > response > keep_alive_s > ...

At any time, a client that leaves its response unread for send_timeout_s is disconnected.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NoReturn

import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.middleware.proxy_headers import _TrustedHosts
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from caret.foundation.web.connection_draining import PacedExecutor
from caret.foundation.web.connections import (
    REFUSED,
    Connections,
    ConnectionSlot,
    TooManyConnections,
)
from caret.foundation.web.response_sending import SendDeadline, adapt_to_version
from caret.foundation.web.server_limits import ServerLimits
from caret.foundation.web.write_coalescing import CoalescingTransport

# A rejected client may still be sending. It reads the response only if its data is consumed, so the
# connection is kept for this time and this many bytes.
_LINGER_S: Final = 1.0
_MAX_LINGER_BYTES: Final = 1024 * 1024
_MAX_PIPELINED: Final = 16  # requests of a connection that wait for the responses to earlier ones
# Pipelined requests, over all connections, that start in one turn of PacedExecutor (4 ms). Without
# this limit, 200 clients that each send 10 requests in one packet delay all other clients.
MAX_PIPELINED_STARTS: Final = 2
# New connections that start in one turn, of those whose first bytes are not the headers of exactly
# one request (see new_connection.py). Each costs at least 0.1 ms.
MAX_PACED_STARTS: Final = 10
# Memory for a client that does not read its response, besides one chunk of the response.
_WRITE_BUFFER_BYTES: Final = 16 * 1024
_SOCKET_BUFFER_BYTES: Final = 128 * 1024  # of the kernel, which doubles it
# Maximum of received bytes of a chunked body, for each byte of its content. A chunk of one byte,
# such as "1\r\nx\r\n", needs six.
_MAX_WIRE_RATIO: Final = 8


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration, with the state that all connections of a server share."""

    def __init__(self, *arguments: Any, limits: ServerLimits, **options: Any) -> None:
        proxies = options.get("forwarded_allow_ips") or []
        super().__init__(*arguments, **options)
        self.limits = limits
        self.client_connections = Connections(limits)
        self.pipelined_starts = PacedExecutor(MAX_PIPELINED_STARTS)
        self.paced_starts = PacedExecutor(MAX_PACED_STARTS)
        self.trusted_proxies = _TrustedHosts(proxies)


class _ParserStopped(Exception):
    """Raised in a callback of the parser, to stop the parser."""


@dataclass(frozen=True, slots=True)
class _LimitExceeded:
    status: HTTPStatus
    reason: str  # label of connections.REFUSED

    def encode_response(self) -> bytes:
        body = f"{self.status.phrase}.\n".encode()
        lines = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(body)}",
            "connection: close",
        )
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + body


_HEADERS_TOO_LARGE: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


class LimitedHttp(HttpToolsProtocol):
    """One connection, from its first bytes to its end or to the upgrade to a WebSocket."""

    config: ServerConfig
    transport: CoalescingTransport

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop,
        *,
        slot: ConnectionSlot,
        headers_due_at: float,
    ) -> None:
        """`headers_due_at` is when the first headers must be complete, by the loop's clock.

        `slot` is the slot of the connection. It is released when the connection ends.
        """
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._slot = slot
        self._headers_due_at = headers_due_at
        self._request_slot: ConnectionSlot | None = None  # of a request through a trusted proxy
        self._stopped_by: _LimitExceeded | None = None
        self._is_refused = self._is_upgraded = False
        # The request that is being answered; with pipelining, `cycle` is the newest one.
        self._running: RequestResponseCycle | None = None
        self._paced_start: Callable[[], None] | None = None  # of the last pipelined request
        self._is_next_pipelined = False  # while uvicorn starts the next request of the pipeline
        self._num_lingering_bytes = 0
        self._num_requests = 0
        # State of the message that is being parsed.
        self._is_in_headers = False  # from the first byte of the request line to the last header
        self._is_in_body = False
        self._num_header_bytes = 0  # of complete headers and the request line
        self._num_wire_bytes = 0  # received after the data in which the previous message ended
        self._num_body_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        sock = transport.get_extra_info("socket")
        # The kernel would buffer megabytes for each slow client and block the loop by copying.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
        coalescing = CoalescingTransport(
            transport, self.loop, close_timeout_s=self._limits.send_timeout_s
        )
        super().connection_made(coalescing)
        self._send_deadline = SendDeadline(self.transport, self._limits.send_timeout_s)
        self._deadline = self.loop.call_at(self._headers_due_at, self._on_headers_late)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._paced_start is not None:
            self.config.pipelined_starts.drop(self._paced_start)
            self._paced_start = None  # break the reference cycle with this object
        self._stop_deadline()
        self._send_deadline.stop()
        self._slot.release()
        if self._request_slot is not None:
            self._request_slot.release()
        self._report_disconnect()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        start = partial(super()._start_asgi_task, cycle, adapt_to_version(app, cycle))
        if self._is_next_pipelined:
            self._paced_start = start
            self.config.pipelined_starts.schedule(start)
        else:
            start()

    def _report_disconnect(self) -> None:
        """Report the disconnect to all requests; uvicorn reports it only to the newest one."""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        for queued, _application in self.pipeline:
            queued.disconnected = True

    # --- bytes received

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            self._count_lingering_bytes(len(data))
            return
        self._num_wire_bytes += len(data)
        super().data_received(data)
        if self._has_stopped_parsing():
            return
        if self._has_too_many_wire_bytes():
            self._send_limit_response(_LimitExceeded(_HEADERS_TOO_LARGE, "headers_too_large"))
        else:
            self._check_deadline()

    def _has_stopped_parsing(self) -> bool:
        return self._is_refused or self._is_upgraded

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_headers, self._is_in_body = True, False
        self._num_header_bytes = self._num_body_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_header_bytes(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count_header_bytes(len(name) + len(value) + len(": \r\n"))
        if len(self.headers) > self._limits.max_headers:
            self._stop_parser(_HEADERS_TOO_LARGE, "too_many_headers")

    def on_headers_complete(self) -> None:
        self._is_in_headers, self._is_in_body = False, True
        self._stop_deadline()
        if len(self.pipeline) >= _MAX_PIPELINED:
            self._stop_parser(HTTPStatus.TOO_MANY_REQUESTS, "too_many_pipelined")
        self._admit_request()
        super().on_headers_complete()
        self._num_requests += 1
        # If the connection is idle even now, the request is an upgrade to a WebSocket, for which
        # uvicorn creates no cycle.
        if self._num_requests >= self._limits.max_requests_per_connection and not self._is_idle():
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._num_body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        self._num_wire_bytes = 0
        self._stop_deadline()
        if not self._is_idle():  # idle: an upgrade, or the response did not wait for the body
            self._begin_request()
        super().on_message_complete()

    def _count_header_bytes(self, num: int) -> None:
        self._num_header_bytes += num
        if self._num_header_bytes > self._limits.max_header_bytes:
            self._stop_parser(_HEADERS_TOO_LARGE, "headers_too_large")

    def _has_too_many_wire_bytes(self) -> bool:
        """Return whether the parser has read too much: a long header, or a body's framing."""
        allowed = self._limits.max_header_bytes
        if self._is_in_body:
            allowed += _MAX_WIRE_RATIO * self._num_body_bytes
        elif not self._is_in_headers and not self._is_idle():
            return False  # the response to a complete request is being sent
        return self._num_wire_bytes > allowed

    # --- limits on unauthenticated requests

    def _admit_request(self) -> None:
        """Store the slot in the ASGI scope; count a request from a trusted proxy in the limits.

        Stop the parser if a limit is reached.
        """
        if self._slot.address is None:
            self._request_slot = self._admit_forwarded_request()
        self.scope["state"]["slot"] = self._request_slot or self._slot

    def _begin_request(self) -> None:
        for slot in (self._slot, self._request_slot):
            if slot is not None:
                slot.begin_request()

    def _admit_forwarded_request(self) -> ConnectionSlot:
        if not self._is_idle():  # proxies do not pipeline, and there is one slot for one request
            self._stop_parser(HTTPStatus.BAD_REQUEST, "pipelined_by_proxy")
        forwarded = [value for name, value in self.headers if name == b"x-forwarded-for"]
        text = b", ".join(forwarded).decode("latin1")
        address, _ = self.config.trusted_proxies.get_trusted_client_address(text)
        proxy = self.client[0] if self.client else ""
        try:
            return self.config.client_connections.admit_request(address or proxy, self._slot)
        except TooManyConnections as error:
            self._stop_parser(HTTPStatus.TOO_MANY_REQUESTS, error.reason)

    def on_response_complete(self) -> None:
        if self._request_slot is not None:
            self._request_slot.release()
            self._request_slot = None
        if not self.pipeline:
            self._slot.end_request()
        self._is_next_pipelined = bool(self.pipeline)
        super().on_response_complete()
        self._is_next_pipelined = False

    def _is_idle(self) -> bool:
        """Return whether no request is served or waits in the pipeline."""
        return not self.pipeline and (self._running is None or self._running.response_complete)

    # --- deadlines

    def _check_deadline(self) -> None:
        if self._deadline is not None:
            return
        if self._is_in_body:
            self._start_deadline(self._limits.body_timeout_s, self._on_body_late)
        elif self._is_idle():
            self._start_deadline(self._limits.header_timeout_s, self._on_headers_late)

    def _start_deadline(self, timeout_s: float, on_late: Callable[[], None]) -> None:
        self._deadline = self.loop.call_later(timeout_s, on_late)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_headers_late(self) -> None:
        self._deadline = None
        if self._is_in_headers:
            self._send_limit_response(_LimitExceeded(HTTPStatus.REQUEST_TIMEOUT, "headers_late"))
        else:
            self.transport.close()  # the client opened the connection in advance and never used it

    def _on_body_late(self) -> None:
        self._deadline = None
        if self.flow.read_paused:  # the application is slow, not the client
            self._start_deadline(self._limits.body_timeout_s, self._on_body_late)
        elif self._is_idle():  # the request was answered without its body
            self.transport.close()
        else:
            self._send_limit_response(_LimitExceeded(HTTPStatus.REQUEST_TIMEOUT, "body_late"))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._send_deadline.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._send_deadline.stop()

    # --- rejections

    def _stop_parser(self, status: HTTPStatus, reason: str) -> NoReturn:
        """Stop the parser from one of its callbacks. uvicorn then calls `send_400_response`."""
        self._stopped_by = _LimitExceeded(status, reason)
        raise _ParserStopped

    def send_400_response(self, msg: str) -> None:
        """Reject the request; uvicorn calls this when the parser has stopped for any reason."""
        self._send_limit_response(
            self._stopped_by or _LimitExceeded(HTTPStatus.BAD_REQUEST, "malformed")
        )

    def _send_limit_response(self, exceeded: _LimitExceeded) -> None:
        """Respond if no response has started, and close the connection."""
        REFUSED.labels(exceeded.reason).inc()
        self._is_refused = True
        self._stop_deadline()
        self._unset_keepalive_if_required()
        can_respond = self._is_idle() or self._is_waiting_for_body()
        self._report_disconnect()
        if not can_respond:  # a response to an earlier request comes first, or a response has begun
            self.transport.close()
            return
        self.transport.write(exceeded.encode_response())
        self.flow.resume_reading()  # the rest of the client's data is read and dropped
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.abort)

    def _is_waiting_for_body(self) -> bool:
        """Return whether the application waits for the rest of the rejected request's body.

        The application has then not started a response, and no earlier request is served.
        """
        is_served = self._is_in_body and not self.pipeline  # not waiting behind an earlier request
        return is_served and self._running is not None and not self._running.response_started

    def _count_lingering_bytes(self, num_bytes: int) -> None:
        self._num_lingering_bytes += num_bytes
        if self._num_lingering_bytes > _MAX_LINGER_BYTES:
            self.transport.abort()

    # --- WebSockets

    def handle_websocket_upgrade(self) -> None:
        if not self._is_idle():
            self._send_limit_response(_LimitExceeded(HTTPStatus.BAD_REQUEST, "upgrade_in_pipeline"))
            return
        self._is_upgraded = True
        self._begin_request()
        self._stop_deadline()
        self._send_deadline.stop()
        self.transport.slots = [
            slot for slot in (self._slot, self._request_slot) if slot is not None
        ]
        super().handle_websocket_upgrade()

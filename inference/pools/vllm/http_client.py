"""An HTTP/1.1 client for engines: `POST` requests with JSON over reused connections.

Caret has its own client, because the client's CPU time is spent for every token (ADR 0039 has the
figures). The client supports no redirects, cookies, proxies, compression or HTTP/2, and drops the
query of a URL. An engine that needs one of these must be behind a router.
"""

import asyncio
import ssl
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from inference.pools.vllm.http_connection import ConnectionLost, HttpConnection

CONNECT_S: Final = 1.0  # timeout
# vLLM closes idle connections after 5 s: close them earlier.
IDLE_TIMEOUT_S: Final = 4.0
_SWEEP_S: Final = 0.5  # between two searches for connections that were idle for too long
MAX_IDLE_CONNECTIONS: Final = 256  # per URL
# After the last data line, only a few bytes of the response remain. If they do not arrive within
# this time, the connection is closed.
_END_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Endpoint:
    host: str
    port: int
    is_encrypted: bool
    head: bytes  # of a request, up to the value of Content-Length


@dataclass(frozen=True, slots=True)
class _IdleConnection:
    connection: HttpConnection
    since_s: float  # on the event loop's clock


class HttpResponse:
    """The response to one request. `close` aborts the request, unless can_reuse_connection."""

    def __init__(
        self, connection: HttpConnection, status: int, store_idle: Callable[[HttpConnection], None]
    ) -> None:
        self._connection = connection
        self._store_idle = store_idle
        self.status = status
        self.can_reuse_connection = False  # set this when no more lines are needed

    async def read_lines(self) -> list[bytes]:
        """Return the next lines, like HttpConnection.read_lines."""
        return await self._connection.read_lines()

    def close(self) -> None:
        if self.can_reuse_connection:
            self._connection.finish_response(within_s=_END_S, on_end=self._store_idle)
        else:
            self._connection.abort()


class HttpClient:
    """Connections to any number of servers. Leaving its context closes all of them."""

    def __init__(self, *, max_stall_s: float) -> None:
        """`max_stall_s`: a connection fails if no data comes for this time during a request."""
        self._max_stall_s = max_stall_s
        # For each URL, the most recently used connection is last.
        self._idle_by_url: defaultdict[str, deque[_IdleConnection]] = defaultdict(deque)
        self._open: set[HttpConnection] = set()
        self._sweep_timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in tuple(self._open):
            connection.abort()
        await asyncio.sleep(0)  # the event loop closes sockets in its next iteration

    async def post(self, url: str, body: bytes) -> HttpResponse:
        """Send a request with JSON, and wait for the head of the response.

        Raises ConnectionFailed, OSError, TimeoutError.
        """
        request = b"%b%d\r\n\r\n%b" % (_parse_endpoint(url).head, len(body), body)
        connection = await self._send_request(url, request)
        status = await connection.read_status()  # does not wait: the head has arrived
        return HttpResponse(connection, status, partial(self._store_idle, url))

    async def _send_request(self, url: str, request: bytes) -> HttpConnection:
        """Send the request, and return a connection that has received the head of the response."""
        idle_connection = self._take_idle(url)
        if idle_connection is not None:
            try:
                return await _send_on_connection(idle_connection, request)
            except ConnectionLost:
                if idle_connection.has_response_started:
                    raise
                # The server closed the connection just as it was reused: try once with a new one.
        return await _send_on_connection(await self._connect(_parse_endpoint(url)), request)

    async def _connect(self, endpoint: _Endpoint) -> HttpConnection:
        """Open a connection. The event loop sets TCP_NODELAY, so writes are sent at once."""
        make = partial(HttpConnection, max_stall_s=self._max_stall_s, on_closed=self._open.discard)
        ssl_context = _make_ssl_context() if endpoint.is_encrypted else None
        async with asyncio.timeout(CONNECT_S):
            _, connection = await asyncio.get_running_loop().create_connection(
                make, endpoint.host, endpoint.port, ssl=ssl_context
            )
        self._open.add(connection)
        return connection

    def _take_idle(self, url: str) -> HttpConnection | None:
        """Remove and return an idle connection; None if there is none.

        The most recently used connection is taken, so that surplus connections expire.
        """
        idle = self._idle_by_url[url]
        while idle:
            connection = idle.pop().connection
            if connection.is_reusable:
                return connection
            connection.abort()
        return None

    def _store_idle(self, url: str, connection: HttpConnection) -> None:
        idle = self._idle_by_url[url]
        if not connection.is_reusable or len(idle) >= MAX_IDLE_CONNECTIONS:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        idle.append(_IdleConnection(connection, loop.time()))
        if self._sweep_timer is None:
            self._sweep_timer = loop.call_later(_SWEEP_S, self._close_expired)

    def _close_expired(self) -> None:
        """Close connections that were idle for too long. Run again while any connection is idle."""
        loop = asyncio.get_running_loop()
        oldest_s = loop.time() - IDLE_TIMEOUT_S
        for idle in self._idle_by_url.values():
            while idle and idle[0].since_s <= oldest_s:
                idle.popleft().connection.abort()
        has_idle = any(self._idle_by_url.values())
        self._sweep_timer = loop.call_later(_SWEEP_S, self._close_expired) if has_idle else None


async def _send_on_connection(connection: HttpConnection, request: bytes) -> HttpConnection:
    connection.send_request(request)
    try:
        await connection.read_status()
    except BaseException:  # also if the task is cancelled
        connection.abort()
        raise
    return connection


@lru_cache(maxsize=1_024)
def _parse_endpoint(url: str) -> _Endpoint:
    parts = urlsplit(url)
    is_encrypted = parts.scheme == "https"
    head = (
        f"POST {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    port = parts.port or (443 if is_encrypted else 80)
    return _Endpoint(parts.hostname or "", port, is_encrypted, head.encode("ascii"))


@cache
def _make_ssl_context() -> ssl.SSLContext:
    return ssl.create_default_context()

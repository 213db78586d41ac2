"""An HTTP/1.1 client for engines: `POST`s of JSON over reused connections.

Caret has its own client, because the client's CPU time is spent for every token (ADR 0039 has the
figures). It supports no redirects, cookies, proxies, compression or HTTP/2. An engine that needs
them must be behind a router.
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

CONNECT_S: Final = 1.0
# vLLM closes idle connections after 5 s: close them earlier.
IDLE_TIMEOUT_S: Final = 4.0
_SWEEP_S: Final = 0.5  # between two searches for idle connections
MAX_IDLE_CONNECTIONS: Final = 256  # per server
# After the last line only a few bytes remain. If they do not arrive, the connection is closed.
_END_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Address:
    host: str
    port: int
    is_encrypted: bool
    head: bytes  # the request's head up to the value of Content-Length


@dataclass(frozen=True, slots=True)
class _IdleConnection:
    connection: HttpConnection
    since_s: float  # on the event loop's clock


class HttpResponse:
    """The response to one request. Closing it early aborts the request."""

    def __init__(
        self, connection: HttpConnection, status: int, keep: Callable[[HttpConnection], None]
    ) -> None:
        self._connection = connection
        self._keep = keep
        self.status = status
        self.is_enough = False  # True: no more lines are needed, so the connection can be reused

    async def read_lines(self) -> list[bytes]:
        """Return the next lines, like HttpConnection.read_lines."""
        return await self._connection.read_lines()

    def close(self) -> None:
        if self.is_enough:
            self._connection.finish_response(within_s=_END_S, on_end=self._keep)
        else:
            self._connection.abort()


class HttpClient:
    """Connections to any number of servers. Leaving its context closes all of them."""

    def __init__(self, *, max_stall_s: float) -> None:
        self._max_stall_s = max_stall_s
        # The most recently used connection last.
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
        """Send the request, and wait for the head of the response.

        Raises ConnectionFailed, OSError, TimeoutError.
        """
        request = b"%b%d\r\n\r\n%b" % (_parse_address(url).head, len(body), body)
        connection = await self._request(url, request)
        return HttpResponse(
            connection, await connection.read_status(), partial(self._store_idle, url)
        )

    async def _request(self, url: str, request: bytes) -> HttpConnection:
        """Send the request, and return a connection that has received the head of the response."""
        idle_connection = self._take_idle(url)
        if idle_connection is not None:
            try:
                return await _send_on_connection(idle_connection, request)
            except ConnectionLost:
                if idle_connection.has_response_started:
                    raise
                # The server closed the connection just as it was reused: try once with a new one.
        return await _send_on_connection(await self._connect(_parse_address(url)), request)

    async def _connect(self, address: _Address) -> HttpConnection:
        """Open a connection. The event loop sets TCP_NODELAY, so writes are sent at once."""
        make = partial(HttpConnection, max_stall_s=self._max_stall_s, on_closed=self._open.discard)
        ssl_context = _make_ssl_context() if address.is_encrypted else None
        async with asyncio.timeout(CONNECT_S):
            _, connection = await asyncio.get_running_loop().create_connection(
                make, address.host, address.port, ssl=ssl_context
            )
        self._open.add(connection)
        return connection

    def _take_idle(self, url: str) -> HttpConnection | None:
        """Return the most recently used connection, so that surplus connections expire."""
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
        """Close connections that were idle for too long. Repeat while any connection is idle."""
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
def _parse_address(url: str) -> _Address:
    parts = urlsplit(url)
    is_encrypted = parts.scheme == "https"
    head = (
        f"POST {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    port = parts.port or (443 if is_encrypted else 80)
    return _Address(parts.hostname or "", port, is_encrypted, head.encode("ascii"))


@cache
def _make_ssl_context() -> ssl.SSLContext:
    return ssl.create_default_context()

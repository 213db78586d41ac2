"""A proxy between gateway and engine that records when a stream ends and which side ended it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

_CHUNK_BYTES: Final = 65_536
_LAST_EVENT: Final = b"data: [DONE]"


@dataclass(frozen=True, slots=True)
class StreamEnd:
    at_s: float  # perf_counter
    # True: the gateway closed the connection; False: the engine had sent everything
    by_gateway: bool


class Relay:
    """Passes bytes both ways without delay. Belongs to one event loop."""

    def __init__(self, upstream_url: str) -> None:
        parts = urlsplit(upstream_url)
        self._upstream = (parts.hostname, parts.port)
        self._server: asyncio.Server | None = None
        self._relaying: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.ends: asyncio.Queue[StreamEnd] = asyncio.Queue()

    @property
    def url(self) -> str:
        assert self._server is not None, "the relay was not entered as a context manager"
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        relaying = tuple(self._relaying.values())
        for to_gateway in tuple(self._relaying):
            # this ends its task; streams of Python 3.11 log an error if the task is cancelled
            to_gateway.close()
        await asyncio.gather(*relaying)

    def forget(self) -> None:
        """Discard the stream ends recorded so far."""
        while not self.ends.empty():
            self.ends.get_nowait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._relaying[writer] = task
        from_engine, to_engine = await asyncio.open_connection(*self._upstream)
        exchange = _Exchange(self.ends)
        response_task = asyncio.create_task(_pass_on(from_engine, writer, exchange.said_by_engine))
        try:
            await _pass_on(reader, to_engine, exchange.said_by_gateway)
            exchange.gateway_closed()
        finally:
            del self._relaying[writer]
            response_task.cancel()
            to_engine.close()
            writer.close()


class _Exchange:
    """The state of one connection. Closing it between two requests ends no stream."""

    def __init__(self, ends: asyncio.Queue[StreamEnd]) -> None:
        self._ends = ends
        self._is_asked = False

    def said_by_gateway(self, _data: bytes) -> None:
        self._is_asked = True

    def said_by_engine(self, data: bytes) -> None:
        if _LAST_EVENT in data:
            self._end(by_gateway=False)

    def gateway_closed(self) -> None:
        if self._is_asked:
            self._end(by_gateway=True)

    def _end(self, *, by_gateway: bool) -> None:
        self._is_asked = False
        self._ends.put_nowait(StreamEnd(time.perf_counter(), by_gateway=by_gateway))


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    look: Callable[[bytes], None],
) -> None:
    """Copy bytes until the reader ends, whether by EOF or by a reset."""
    try:
        while data := await reader.read(_CHUNK_BYTES):
            look(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        return

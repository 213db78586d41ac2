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
    # True: the gateway closed the connection; False: the engine had sent the whole completion
    by_gateway: bool


class EngineProxy:
    """Passes bytes both ways without delay. Belongs to one event loop."""

    def __init__(self, upstream_url: str) -> None:
        parts = urlsplit(upstream_url)
        self._upstream = (parts.hostname, parts.port)
        self._server: asyncio.Server | None = None
        self._tasks: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.ends: asyncio.Queue[StreamEnd] = asyncio.Queue()

    @property
    def url(self) -> str:
        assert self._server is not None, "the proxy was not entered as a context manager"
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
        tasks = tuple(self._tasks.values())
        for to_gateway in tuple(self._tasks):
            # Closing ends the task. Python 3.11 logs an error if the task is cancelled instead.
            to_gateway.close()
        await asyncio.gather(*tasks)

    def discard_ends(self) -> None:
        """Discard the stream ends recorded so far."""
        while not self.ends.empty():
            self.ends.get_nowait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[writer] = task
        from_engine, to_engine = await asyncio.open_connection(*self._upstream)
        exchange = _Exchange(self.ends)
        response_task = asyncio.create_task(_pass_on(from_engine, writer, exchange.on_engine_data))
        try:
            await _pass_on(reader, to_engine, exchange.on_gateway_data)
            exchange.gateway_closed()
        finally:
            del self._tasks[writer]
            response_task.cancel()
            to_engine.close()
            writer.close()


class _Exchange:
    """The state of one connection. Its closing ends a stream only if a request is pending."""

    def __init__(self, ends: asyncio.Queue[StreamEnd]) -> None:
        self._ends = ends
        self._is_request_pending = False

    def on_gateway_data(self, _data: bytes) -> None:
        self._is_request_pending = True

    def on_engine_data(self, data: bytes) -> None:
        if _LAST_EVENT in data:
            self._end(by_gateway=False)

    def gateway_closed(self) -> None:
        if self._is_request_pending:
            self._end(by_gateway=True)

    def _end(self, *, by_gateway: bool) -> None:
        self._is_request_pending = False
        self._ends.put_nowait(StreamEnd(time.perf_counter(), by_gateway=by_gateway))


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    on_data: Callable[[bytes], None],
) -> None:
    """Copy bytes until the reader ends, whether by EOF or by a reset."""
    try:
        while data := await reader.read(_CHUNK_BYTES):
            on_data(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        return

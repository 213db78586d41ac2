"""A relay between gateway and engine that notes when a stream ends, and which of them ended it."""

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
    by_gateway: bool  # it closed the connection; else the engine had said all


class Relay:
    """Passes bytes both ways, at once. One event loop uses it."""

    def __init__(self, upstream_url: str) -> None:
        parts = urlsplit(upstream_url)
        self._upstream = (parts.hostname, parts.port)
        self._server: asyncio.Server | None = None
        self._relaying: set[asyncio.Task[None]] = set()
        self.ends: asyncio.Queue[StreamEnd] = asyncio.Queue()

    @property
    def url(self) -> str:
        assert self._server is not None, "the relay was not entered"
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
        for task in tuple(self._relaying):
            task.cancel()
        await asyncio.gather(*self._relaying, return_exceptions=True)

    def forget(self) -> None:
        """Leaves out what ended before now."""
        while not self.ends.empty():
            self.ends.get_nowait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._relaying.add(task)
        task.add_done_callback(self._relaying.discard)
        from_engine, to_engine = await asyncio.open_connection(*self._upstream)
        back = asyncio.create_task(_pass_on(from_engine, writer, self._look))
        try:
            await _pass_on(reader, to_engine)
            self.ends.put_nowait(StreamEnd(time.perf_counter(), by_gateway=True))
        finally:
            back.cancel()
            to_engine.close()
            writer.close()

    def _look(self, data: bytes) -> None:
        if _LAST_EVENT in data:
            self.ends.put_nowait(StreamEnd(time.perf_counter(), by_gateway=False))


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    look: Callable[[bytes], None] = lambda _: None,
) -> None:
    """Until the end of what is read, be it a proper one or a reset."""
    try:
        while data := await reader.read(_CHUNK_BYTES):
            look(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        return

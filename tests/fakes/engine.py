"""An engine that writes the chunks that a test gives it, and counts its open streams."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType

from inference.errors import EngineError
from inference.pools.engine import EngineChunk, EngineRequest, EngineStop


def chunks_of(*texts: str, stop: EngineStop | None = EngineStop.STOP) -> list[EngineChunk]:
    """Return chunks of one token for each text; the last chunk has the stop reason."""
    last = len(texts) - 1
    return [
        EngineChunk(text=text, generated_tokens=index + 1, stop=stop if index == last else None)
        for index, text in enumerate(texts)
    ]


class FakeEngine:
    """Yields `chunks`, and can then hang or fail with `error`.

    `error_at_start` is raised before the stream begins. The last four options contain URLs of
    replicas, and apply only to these replicas: `failing` maps a URL to an error before the stream
    begins, `silent` to an error instead of the first chunk, and `torn` to the chunks that arrive
    before the connection is lost. Replicas in `stuck` never respond.
    """

    def __init__(
        self,
        chunks: Sequence[EngineChunk] = (),
        *,
        hangs: bool = False,
        error: Exception | None = None,
        error_at_start: Exception | None = None,
        failing: Mapping[str, Exception] = MappingProxyType({}),
        silent: Mapping[str, Exception] = MappingProxyType({}),
        torn: Mapping[str, Sequence[EngineChunk]] = MappingProxyType({}),
        stuck: Collection[str] = (),
    ) -> None:
        self.chunks = chunks
        self.hangs = hangs
        self.error = error
        self.error_at_start = error_at_start
        self.failing = failing
        self.silent = silent
        self.torn = torn
        self.stuck = stuck
        self.requests: list[EngineRequest] = []
        self.num_open = 0
        self.max_open = 0
        self.num_yielded = 0

    @asynccontextmanager
    async def complete(self, request: EngineRequest) -> AsyncIterator[AsyncIterator[EngineChunk]]:
        self.requests.append(request)
        if error := self.error_at_start or self.failing.get(request.replica.url):
            raise error
        self.num_open += 1
        self.max_open = max(self.max_open, self.num_open)
        try:
            if request.replica.url in self.stuck:
                await asyncio.Event().wait()
            if (torn := self.torn.get(request.replica.url)) is not None:
                yield self._yield_chunks(torn, EngineError("engine_disconnected", ""))
            else:
                yield self._yield_chunks(
                    self.chunks, self.error, self.silent.get(request.replica.url)
                )
        finally:
            self.num_open -= 1

    async def _yield_chunks(
        self,
        chunks: Sequence[EngineChunk],
        error: Exception | None,
        error_before: Exception | None = None,
    ) -> AsyncIterator[EngineChunk]:
        if error_before is not None:
            raise error_before
        for chunk in chunks:
            await asyncio.sleep(0)
            self.num_yielded += 1
            yield chunk
        if error is not None:
            raise error
        if self.hangs:
            await asyncio.Event().wait()

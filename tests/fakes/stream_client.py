"""A client of the gateway's WebSocket protocol, without a network, in front of a fake engine."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from caret.contracts.usage import FinishReason
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ClientDisconnected, ResponseWriter
from inference.completion.suggestion_edit import SuggestionEdit
from inference.gateway.protocol.connection import Connection
from inference.gateway.protocol.connection_backend import ConnectionBackend, StreamCaller
from inference.gateway.protocol.frames import (
    DeltaFrame,
    DoneFrame,
    ErrorFrame,
    PolicyFrame,
    ServerFrame,
)
from inference.gateway.protocol.late_outcomes import LateOutcomeRecorder
from inference.gateway.stream import stream
from inference.pools.engine import Engine
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.journal import FakeJournal
from tests.fakes.polling import wait_until
from tests.fakes.pools import make_engine_request
from tests.fakes.tenants import make_principal

PRINCIPAL = make_principal()


class Editor:
    """Sends frames to the real connection class, and records the frames of the response."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.frames: list[ServerFrame] = []
        self.journal = FakeJournal()
        self.has_left = False  # True: it has disconnected, so no frame reaches it
        self.opened: list[IncomingRequest] = []  # a warm-up for each opened file
        self.suggestion_edits: list[SuggestionEdit] = []
        self.principal = PRINCIPAL
        self.find_principal: Callable[[], Any] = lambda: self.principal
        self.clock = FakeClock()
        backend = ConnectionBackend(
            serve=self._serve,
            append_record=self.journal.append,
            warm_up=lambda _tenant_id, arrival: self.opened.append(arrival),
            on_edited=self.suggestion_edits.append,
            # Not `self.find_principal` itself, because a test may replace it later.
            find_principal=lambda: self.find_principal(),
            find_modes=lambda principal: principal.modes,
            record_late_outcome=LateOutcomeRecorder(
                clock=self.clock, append_record=self.journal.append
            ).record,
            clock=self.clock,
        )
        self.connection = Connection(
            backend, StreamCaller(PRINCIPAL, "key", address=None), self._record_frame
        )
        self.arrivals: list[IncomingRequest] = []  # completions
        self.cancel_times_s: list[float | None] = []  # of ended completions; None: not cancelled

    async def says(self, kind: str, id: str, **fields: Any) -> None:
        """Send a frame of this kind."""
        if kind == "complete":
            fields = {"prefix": "a = ", "path": f"{id}.py", **fields}
        await self.connection.on_frame(json.dumps({"type": kind, "id": id, **fields}))

    async def opens(self, **fields: Any) -> None:
        """Send a frame about an opened file."""
        await self.connection.on_frame(json.dumps({"type": "file_opened", **fields}))

    def frames_of(self, id: str) -> list[DeltaFrame | DoneFrame | ErrorFrame]:
        # Policy frames have no ID.
        frames_with_id = (frame for frame in self.frames if not isinstance(frame, PolicyFrame))
        return [frame for frame in frames_with_id if frame.id == id]

    def text(self, id: str) -> str:
        return "".join(frame.text for frame in self.frames_of(id) if isinstance(frame, DeltaFrame))

    def ends(self, id: str) -> list[str]:
        """Return the finish reason or the error code of each last frame, at most one if correct."""
        ends = [frame for frame in self.frames_of(id) if not isinstance(frame, DeltaFrame)]
        return [end.finish_reason if isinstance(end, DoneFrame) else end.code for end in ends]

    async def waits(self, condition: Callable[[], bool]) -> None:
        await wait_until(condition)

    async def waits_for_end(self, *ids: str) -> None:
        await self.waits(lambda: all(self.ends(id) for id in ids))
        # The tasks that have sent the last frames still have to end.
        for _ in range(5):
            await asyncio.sleep(0)

    async def _record_frame(self, frame: ServerFrame) -> None:
        if self.has_left:
            raise ClientDisconnected
        self.frames.append(frame)

    async def _serve(self, arrival: IncomingRequest, client: ResponseWriter) -> None:
        self.arrivals.append(arrival)
        trace = RequestTrace(arrival=arrival, clock=FakeClock())
        try:
            await _complete(self.engine, trace, client)
        finally:
            self.cancel_times_s.append(trace.cancelled_s)


async def _complete(engine: Engine, trace: RequestTrace, client: ResponseWriter) -> None:
    """Run the stages from the engine to the client."""
    async with (
        stream(client, trace) as send,
        engine.complete(make_engine_request()) as chunks,
    ):
        async for chunk in chunks:
            if chunk.text:
                await send(chunk.text)
            if chunk.stop:
                trace.finish(FinishReason(chunk.stop.value))


@asynccontextmanager
async def open_editor(engine: FakeEngine | None = None) -> AsyncIterator[Editor]:
    editor = Editor(engine or FakeEngine(chunks_of("b", "c")))
    try:
        yield editor
    finally:
        await editor.connection.close()

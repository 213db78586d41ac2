"""Editors under load: they send requests at a given rate and log how each one ended.

Each editor has one connection to one of the gateways. If the connection breaks or stalls, the
editor connects to the next gateway and repeats the request, as a language server does behind a load
balancer. A request without an end has failed only after the last attempt.

    python -m tests.chaos.clients SPECIFICATION      a JSON object with the fields of `Load`

The process runs until SIGTERM.
"""

import asyncio
import itertools
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path
from typing import Final

import msgspec
import uvloop
from msgspec.structs import replace

from tests.benchmarks.loaded_gateway import frame_of
from tests.benchmarks.raw_clients import Answer, ClientConnection, WebSocketConnection
from tests.benchmarks.typing_developers import Typist, typists
from tests.chaos.client_log import Note

_MAX_ATTEMPTS: Final = 4
_CONNECT_TIMEOUT_S: Final = 1.0
_RESPONSE_TIMEOUT_S: Final = 5.0  # for the end of one attempt
_PAUSE_S: Final = 0.2  # before the next attempt
# An editor returns to its own gateway, which may have recovered, after this time.
_RETURN_AFTER_S: Final = 15.0
MAX_REQUEST_S: Final = 25.0  # four attempts of up to 6 s (connection and response), three pauses
_BROKEN: Final = ("lost", "late", "unreachable")  # endings after which it tries another gateway


class TenantLoad(msgspec.Struct, frozen=True):
    """The editors of one tenant."""

    tenant: str
    keys: tuple[str, ...]  # one for each developer
    rate: float  # requests a second, all together
    num_editors: int


class Load(msgspec.Struct, frozen=True):
    """The gateways and the requests that all tenants send to them."""

    gateways: tuple[str, ...]  # base URLs
    tenant_loads: tuple[TenantLoad, ...]
    notes: str  # path of the log file


class End(msgspec.Struct):
    """The fields of a `done` or `error` frame that are used here."""

    type: str
    finish_reason: str = ""
    code: str = ""
    meta: dict[str, object] = {}


_end_decoder: Final = msgspec.json.Decoder(End)


class EditorConnection(WebSocketConnection):
    """A connection to a gateway, which also keeps the frame that ended the last completion."""

    def __init__(self) -> None:
        super().__init__()
        self.end: End | None = None

    def _on_frame(self, kind: int, payload: bytes) -> None:
        if payload.startswith((b'{"type":"done"', b'{"type":"error"')):
            self.end = _end_decoder.decode(payload)
        super()._on_frame(kind, payload)


@dataclass(slots=True)
class Editor:
    """One editor of a tenant, which sends one request at a time."""

    gateways: Sequence[str]
    key: str
    typist: Typist
    path: str
    home: int  # number of its own gateway, modulo the number of gateways
    connection: EditorConnection | None = None
    # How many gateways the editor has given up since it was connected to its own.
    num_abandoned_gateways: int = 0
    abandoned_s: float = 0.0  # monotonic time when it gave up the last gateway

    async def request_completion(self, payload: bytes) -> tuple[Answer, End | None]:
        """Make one attempt.

        If no end frame came, the ending is "unauthorized" or one of _BROKEN.
        """
        began_s = time.perf_counter()
        try:
            connection = await self._connect()
        except (OSError, TimeoutError) as error:
            self._abandon_gateway()
            ending = "unauthorized" if " 401 " in str(error) else "unreachable"
            return Answer(None, (time.perf_counter() - began_s) * 1000, ending), None
        answer_future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        connection.end = None

        def on_answer(_connection: ClientConnection, answer: Answer) -> None:
            if not answer_future.done():
                answer_future.set_result(answer)

        connection.send(payload, on_answer)
        try:
            async with asyncio.timeout(_RESPONSE_TIMEOUT_S):
                answer = await answer_future
        except TimeoutError:
            answer = Answer(None, (time.perf_counter() - began_s) * 1000, "late")
        if answer.ending in _BROKEN:
            self._abandon_gateway()
        return answer, connection.end

    async def _connect(self) -> EditorConnection:
        """Return the open connection, or a new one."""
        if self.num_abandoned_gateways and time.monotonic() - self.abandoned_s > _RETURN_AFTER_S:
            self._close()
            self.num_abandoned_gateways = 0
        if self.connection is None or self.connection.is_lost:
            number = self.home + self.num_abandoned_gateways
            gateway = self.gateways[number % len(self.gateways)]
            headers = f"authorization: Bearer {self.key}\r\n"
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                url = f"{gateway}/v1/stream"
                self.connection = await EditorConnection.open(url, headers=headers)
        return self.connection

    def _abandon_gateway(self) -> None:
        self._close()
        self.num_abandoned_gateways += 1
        self.abandoned_s = time.monotonic()

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None


@dataclass(slots=True)
class LoadGenerator:
    """Sends the requests of all tenants, and writes their notes to the log."""

    load: Load
    log: BufferedWriter
    idle_editors: list[deque[Editor]] = field(default_factory=list)  # by the tenant's index
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    frame_ids: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        new_typists = iter(
            typists(sum(tenant_load.num_editors for tenant_load in self.load.tenant_loads))
        )
        for tenant_load in self.load.tenant_loads:
            numbers = range(tenant_load.num_editors)
            self.idle_editors.append(
                deque(self._editor(tenant_load, number, new_typists) for number in numbers)
            )

    async def run(self, stop_event: asyncio.Event) -> None:
        rates = [tenant_load.rate for tenant_load in self.load.tenant_loads]
        due_s = time.perf_counter()
        while not stop_event.is_set():
            due_s += random.expovariate(sum(rates))
            if (wait_s := due_s - time.perf_counter()) > 0:
                await asyncio.sleep(wait_s)
            (tenant_index,) = random.choices(range(len(rates)), weights=rates)
            # If all editors of the tenant wait for a response, this request is left out.
            if self.idle_editors[tenant_index]:
                task = asyncio.create_task(self._send_one(tenant_index))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
        # Let requests in flight end. There may be none, but asyncio.wait needs at least one task.
        sleep = asyncio.create_task(asyncio.sleep(0))
        await asyncio.wait([*self.tasks, sleep], timeout=MAX_REQUEST_S)

    async def _send_one(self, tenant_index: int) -> None:
        tenant_load, editor = (
            self.load.tenant_loads[tenant_index],
            self.idle_editors[tenant_index].popleft(),
        )
        at_s, (prefix, suffix) = time.time(), editor.typist.type()
        breaks, answer, end = 0, None, None
        for attempt in range(_MAX_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE_S)
            frame_id = str(next(self.frame_ids))
            payload = frame_of(frame_id, path=editor.path, prefix=prefix, suffix=suffix)
            answer, end = await editor.request_completion(payload)
            if answer.ending not in _BROKEN:
                break
            # The request did not reach a gateway that was unreachable.
            breaks += answer.ending != "unreachable"
        assert answer is not None
        note = _make_note(tenant_load.tenant, at_s, answer, end)
        note = replace(note, attempts=attempt + 1, breaks=breaks)
        self.log.write(msgspec.json.encode(note) + b"\n")
        self.log.flush()
        self.idle_editors[tenant_index].append(editor)

    def _editor(
        self, tenant_load: TenantLoad, number: int, new_typists: Iterator[Typist]
    ) -> Editor:
        return Editor(
            self.load.gateways,
            key=tenant_load.keys[number % len(tenant_load.keys)],
            typist=next(new_typists),
            # Editors have different files, because a request supersedes those for the same file.
            path=f"src/{tenant_load.tenant}/module_{number}.py",
            home=number,
        )


def _make_note(tenant: str, at_s: float, answer: Answer, end: End | None) -> Note:
    meta = end.meta if end is not None else {}
    return Note(
        at_s=at_s,
        tenant=tenant,
        ending=answer.ending if end is None else end.finish_reason or end.code,
        total_ms=answer.end_ms,
        first_ms=answer.first_ms,
        request_id=str(meta.get("request_id", "")),
        # By way of `str`, because the values have the type `object`.
        prompt_tokens=int(str(meta.get("prompt_tokens", 0))),
        generated_tokens=int(str(meta.get("generated_tokens", 0))),
        is_error=end is not None and end.type == "error",
    )


async def serve(load: Load) -> None:
    stop_event = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop_event.set)
    with Path(load.notes).open("ab") as log:  # noqa: ASYNC230  # before anything runs
        await LoadGenerator(load, log).run(stop_event)


if __name__ == "__main__":
    uvloop.run(serve(msgspec.json.decode(sys.argv[1], type=Load)))

"""Editors at a real gateway: connections that record each completion's finish reason and times."""

import asyncio
import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from tests.benchmarks.raw_clients import ClientConnection, WebSocketConnection
from tests.benchmarks.typing_developers import Typist, typists

_MAX_TOKENS: Final = 16
# About 500 tokens together with the suffix.
_PREFIX_CHARS: Final = 1_200
_SUFFIX_CHARS: Final = 300
_TIMEOUT_S: Final = 60.0
_decode = msgspec.json.decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Observation:
    """One completion, as its client saw it."""

    sent_s: float  # by time.perf_counter()
    finish_reason: str  # "error" for any error code
    end_ms: float  # from sending to the end, as the client measures it
    first_ms: float | None  # to the first text, as the client measures it; None: there was no text
    # Until the engine's first token reached the gateway, as the gateway reports it; None: there was
    # none.
    gateway_first_ms: float | None
    gateway_total_ms: float | None  # as the gateway reports it

    @property
    def is_shed(self) -> bool:
        return self.finish_reason == "shed"

    @property
    def ended_s(self) -> float:
        return self.sent_s + self.end_ms / 1000


class WatchedConnection(WebSocketConnection):
    on_observation: Callable[[Observation], None]

    def _on_frame(self, kind: int, payload: bytes) -> None:
        if payload.startswith(b'{"type":"delta"'):
            self._record_first_text()
        elif payload.startswith((b'{"type":"done"', b'{"type":"error"')):
            observation = self._to_observation(_decode(payload))
            self.on_observation(observation)
            self._end(observation.finish_reason)
        else:
            super()._on_frame(kind, payload)

    def _to_observation(self, end: dict[str, Any]) -> Observation:
        meta = end.get("meta", {})
        engine_ms = meta.get("engine_ms")
        return Observation(
            sent_s=self._sent_s,
            finish_reason=end.get("finish_reason", "error"),
            end_ms=self._ms_since_sent(),
            first_ms=self._first_ms,
            gateway_first_ms=None if engine_ms is None else meta["time_to_engine_ms"] + engine_ms,
            gateway_total_ms=meta.get("total_ms"),
        )


@dataclass(slots=True)
class Editors:
    """Editors with a connection and a file each, and one request at a time."""

    keys: Sequence[str]
    num: int
    url: str = ""  # of the gateway at the time when they connect
    typists: list[Typist] = field(default_factory=list)
    connections: list[WatchedConnection] = field(default_factory=list)
    free: deque[int] = field(default_factory=deque)
    num_pending: int = 0
    num_withheld: int = 0  # requests not sent, because no editor was free
    _observations: list[Observation] = field(default_factory=list)
    _ids: "itertools.count[int]" = field(default_factory=itertools.count)

    async def open(self) -> None:
        """Connect all editors; typists continue at their last position."""
        self.typists = self.typists or typists(self.num)
        self.connections = list(await asyncio.gather(*map(self._open_connection, range(self.num))))
        for connection in self.connections:
            connection.on_observation = self._observations.append
        self.free = deque(random.sample(range(self.num), self.num))

    def close(self) -> None:
        for connection in self.connections:
            connection.close()

    async def send_at_rate(self, rate: float, *, seconds: float) -> list[Observation]:
        """Send this many requests a second at random times, whatever the response times are."""
        began_s = now_s = due_s = time.perf_counter()
        while now_s - began_s < seconds:
            due_s += random.expovariate(rate)
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            if self.free:
                self._send_next(self.free.popleft(), self.free.append)
            else:
                self.num_withheld += 1
            now_s = time.perf_counter()
        return await self._take_observations()

    async def send_concurrently(self, count: int, *, seconds: float) -> list[Observation]:
        """Keep this many requests in flight: send the next one as soon as one is answered."""
        ends_s = time.perf_counter() + seconds

        def send_next(number: int) -> None:
            self.free.append(number)
            if time.perf_counter() < ends_s:
                self._send_next(self.free.popleft(), send_next)

        for _ in range(count):
            self._send_next(self.free.popleft(), send_next)
        await asyncio.sleep(seconds)
        return await self._take_observations()

    async def request_each_file_once(self, *, at_a_time: int) -> None:
        """Request each file once, so that the stable part of every file's prompt is cached."""
        remaining = deque(range(self.num))

        def send_following(_number: int) -> None:
            if remaining:
                self._send_next(remaining.popleft(), send_following)

        for _ in range(at_a_time):
            send_following(0)  # the number is not used
        await self._take_observations()

    def _send_next(self, number: int, then: Callable[[int], None]) -> None:
        """Send the next request of this editor; call `then` with its number after the response."""

        def on_answer(_connection: ClientConnection, _answer: object) -> None:
            self.num_pending -= 1
            then(number)

        self.num_pending += 1
        self.connections[number].send(self._frame(number), on_answer)

    def _frame(self, number: int) -> bytes:
        prefix, suffix = self.typists[number].type()
        return _encode(
            {
                "type": "complete",
                "id": str(next(self._ids)),
                "mode": "inline",
                "path": f"src/module_{number}.py",
                "language": "python",
                # A window that moves with the cursor, as many plug-ins send it. So the engine must
                # prefill most of the prompt each time.
                "prefix": prefix[-_PREFIX_CHARS:],
                "suffix": suffix[:_SUFFIX_CHARS],
                "repository": {"name": "burst"},
                "max_tokens": _MAX_TOKENS,
            }
        )

    async def _take_observations(self) -> list[Observation]:
        """Wait for all responses, and return the completions since the last call."""
        async with asyncio.timeout(_TIMEOUT_S):
            while self.num_pending:  # noqa: ASYNC110  # callbacks change it
                await asyncio.sleep(0.01)
        # Emptied in place, because the connections append to this list.
        observations, self._observations[:] = self._observations.copy(), []
        return observations

    async def _open_connection(self, number: int) -> WatchedConnection:
        key = self.keys[number % len(self.keys)]
        headers = f"authorization: Bearer {key}\r\n"
        return await WatchedConnection.open(f"{self.url}/v1/stream", headers=headers)

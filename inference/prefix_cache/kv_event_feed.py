"""Fills the index of one replica from the events that it publishes over ZeroMQ.

Nothing waits for it: without it, or behind it, requests go by affinity alone. What was missed is
asked for again where the replica replays; where it does not, what was known of it is forgotten.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog
import zmq
import zmq.asyncio

from inference.prefix_cache.cache_index import ReplicaBlocks
from inference.prefix_cache.kv_events import MalformedKvEvents, decode_events
from inference.prefix_cache.sequence_check import BatchSequence, SequenceStatus

_MAX_QUEUED: Final = 10_000  # messages; beyond it the socket drops them, which is seen as a gap
_MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
_MAX_REPLAY_S: Final = 5.0
_NUM_FRAMES: Final = 3  # topic, number, batch
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KvEventPublication:
    """Where a replica publishes."""

    replica: str  # its name, for the log
    events: str  # tcp://host:port
    replay: str | None  # tcp://host:port; None: it does not replay


class KvEventFeed:
    def __init__(self, publication: KvEventPublication, held: ReplicaBlocks) -> None:
        self._publication = publication
        self._held = held
        self._sequence = BatchSequence()

    async def run(self) -> None:
        """Until it is cancelled."""
        self._held.reset()
        self._sequence = BatchSequence()
        with _socket(zmq.SUB, self._publication.events) as subscription:
            subscription.setsockopt(zmq.SUBSCRIBE, b"")
            await self._catch_up()
            while True:
                frames = await subscription.recv_multipart()
                await self._on_frames(frames)
                # A message that was there already is received without a pause: others run, too.
                await asyncio.sleep(0)

    async def _on_frames(self, frames: list[bytes]) -> None:
        if len(frames) != _NUM_FRAMES:
            self._reset_blocks("garbled")
            return
        number = int.from_bytes(frames[1], "big")
        verdict = self._sequence.check(number)
        if verdict is SequenceStatus.RESTART:
            self._reset_blocks("restart")
        if (
            verdict in (SequenceStatus.GAP, SequenceStatus.RESTART)
            and number > self._sequence.expected
        ):
            await self._catch_up()
        if number >= self._sequence.expected:  # else the replay has brought it
            self._apply(number, frames[2])

    async def _catch_up(self) -> None:
        """Asks for what was published from the expected number on."""
        if self._publication.replay is None:
            return
        try:
            async with asyncio.timeout(_MAX_REPLAY_S):
                with _socket(zmq.DEALER, self._publication.replay) as socket:
                    await socket.send_multipart([b"", self._sequence.expected.to_bytes(8, "big")])
                    async for number, payload in _replayed(socket):
                        self._apply(number, payload)
                        await asyncio.sleep(0)
        except TimeoutError:
            log.warning("kv_events.no_replay", replica=self._publication.replica)

    def _apply(self, number: int, payload: bytes) -> None:
        if number > self._sequence.expected:
            self._reset_blocks("gap")
        self._sequence.mark_applied(number)
        try:
            for event in decode_events(payload):
                self._held.apply(event)
        except (MalformedKvEvents, OverflowError):
            self._reset_blocks("garbled")

    def _reset_blocks(self, reason: str) -> None:
        """What was known may be wrong by now."""
        if len(self._held):
            log.info("kv_events.lost", replica=self._publication.replica, reason=reason)
        self._held.reset()


async def _replayed(socket: zmq.asyncio.Socket) -> AsyncIterator[tuple[int, bytes]]:
    """vLLM sends them in order, then a batch without a number."""
    while True:
        _, _, number, payload = await socket.recv_multipart()
        if not payload:
            return
        yield int.from_bytes(number, "big"), payload


@contextmanager
def _socket(kind: int, address: str) -> Iterator[zmq.asyncio.Socket]:
    socket = zmq.asyncio.Context.instance().socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVHWM, _MAX_QUEUED)
    socket.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
    try:
        socket.connect(address)
        yield socket
    finally:
        socket.close()

"""Updates the index of one replica from the KV events that the replica publishes over ZeroMQ.

No request waits for events: if none are known, requests are routed by hash alone. Missed events are
requested again if the replica supports replay. If they cannot be replayed, the index is cleared.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import structlog
import zmq
import zmq.asyncio

from inference.prefix_cache.cache_index import ReplicaBlocks
from inference.prefix_cache.kv_events import MalformedKvEvents, decode_events

_MAX_QUEUED: Final = 10_000  # messages; further ones are lost, which causes a gap
_MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
_MAX_REPLAY_S: Final = 5.0
_NUM_FRAMES: Final = 3  # of a message: topic, sequence number, batch of events
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KvEventPublication:
    """The addresses at which a replica publishes its events."""

    replica: str  # name, for logs
    events: str  # tcp://host:port
    replay: str | None  # tcp://host:port; None: no replay


class KvEventFeed:
    """Receives the events of one replica, and applies them to its blocks in the index."""

    def __init__(self, publication: KvEventPublication, blocks: ReplicaBlocks) -> None:
        self._publication = publication
        self._blocks = blocks
        self._sequence = BatchSequence()

    async def run(self) -> None:
        """Receive and apply the events until cancelled."""
        self._blocks.reset()
        self._sequence = BatchSequence()
        with _open_socket(zmq.SUB, self._publication.events) as subscription:
            subscription.setsockopt(zmq.SUBSCRIBE, b"")
            await self._catch_up()
            while True:
                frames = await subscription.recv_multipart()
                await self._on_frames(frames)
                # Queued messages are received without waiting, so let other tasks run.
                await asyncio.sleep(0)

    async def _on_frames(self, frames: list[bytes]) -> None:
        if len(frames) != _NUM_FRAMES:
            self._reset_blocks("garbled")
            return
        number = int.from_bytes(frames[1], "big")
        if self._sequence.check(number) is SequenceStatus.RESTART:
            self._reset_blocks("restart")
        if number > self._sequence.expected:  # batches were missed
            await self._catch_up()
        if number >= self._sequence.expected:  # otherwise the replay included the batch
            self._apply(number, frames[2])

    async def _catch_up(self) -> None:
        """Apply the missed events, if the replica supports replay."""
        if self._publication.replay is None:
            return
        try:
            async with asyncio.timeout(_MAX_REPLAY_S):
                with _open_socket(zmq.DEALER, self._publication.replay) as socket:
                    # An empty delimiter, and the number of the first batch to replay.
                    await socket.send_multipart([b"", self._sequence.expected.to_bytes(8, "big")])
                    async for number, payload in _receive_replay(socket):
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
                self._blocks.apply(event)
        except (MalformedKvEvents, OverflowError):
            self._reset_blocks("garbled")

    def _reset_blocks(self, reason: str) -> None:
        """Clear the replica's index, because it may be wrong. `reason` is logged."""
        if len(self._blocks):
            log.info("kv_events.lost", replica=self._publication.replica, reason=reason)
        self._blocks.reset()


async def _receive_replay(socket: zmq.asyncio.Socket) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the number and payload of each replayed batch.

    vLLM sends the batches in order, and then an empty payload.
    """
    while True:
        _delimiter, _topic, number, payload = await socket.recv_multipart()
        if not payload:
            return
        yield int.from_bytes(number, "big"), payload


@contextmanager
def _open_socket(kind: int, address: str) -> Iterator[zmq.asyncio.Socket]:
    socket = zmq.asyncio.Context.instance().socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVHWM, _MAX_QUEUED)
    socket.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
    try:
        socket.connect(address)
        yield socket
    finally:
        socket.close()


class SequenceStatus(StrEnum):
    """The status of a batch that was just published, by its sequence number."""

    NEXT = "next"  # the batch that was expected
    SEEN = "seen"  # a replay already included the batch
    GAP = "gap"  # an earlier batch was lost
    RESTART = "restart"  # the engine restarted: its cache is empty


class BatchSequence:
    """The sequence numbers of one replica's batches. The first number after a start is 0."""

    def __init__(self) -> None:
        self._expected = 0  # the next number to apply
        self._last_live: int | None = None  # last published number; replays do not count

    @property
    def expected(self) -> int:
        return self._expected

    def check(self, number: int) -> SequenceStatus:
        """Store the number of a published batch, and return the status of the batch.

        After a restart, number 0 is expected.
        """
        has_restarted = self._last_live is not None and number <= self._last_live
        self._last_live = number
        if has_restarted:
            self._expected = 0
            return SequenceStatus.RESTART
        if number < self._expected:
            return SequenceStatus.SEEN
        return SequenceStatus.NEXT if number == self._expected else SequenceStatus.GAP

    def mark_applied(self, number: int) -> None:
        self._expected = number + 1

"""The journal of usage records: records go to a local file, and then in batches to a Redis stream.

`append` writes a record to the current segment before it returns. So no record is lost if this
process ends, unless the disk is full. A background task periodically closes the current segment and
sends its frames. A segment is deleted when all its records are ingested (see also MAX_SHIPPED).
Redis may lose entries if it starts without its file, or if a Redis replica without the last entries
takes over. Then the segments are sent again. If a gateway leaves segments behind, the next gateway
that uses the folder sends them. Repeated sending is harmless: ingestion counts each record once, by
its ID.

    journal/
      <start>-<pid>.<n>.log    a segment, locked (flock) by the gateway that writes it

A segment is a list of frames. A frame has a length (4 bytes) and a msgpack array of records.

The journal does not protect against the loss of the machine: an fsync would delay each completion
by 5 ms.
"""

import asyncio
import errno
import fcntl
import os
import struct
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import structlog

from caret.contracts.usage import UsageRecord, encode_records

_FRAME: Final = struct.Struct(">I")  # the length of the data
SHIP_EVERY_S: Final = 0.25  # a shipment costs as much CPU time as a completion
MAX_RETRY_S: Final = 5.0  # the longest pause after a failed shipment
MAX_CLOSE_S: Final = 1.5  # for ingestion at shutdown
# Frames per Redis pipeline: one pipeline with 500 frames blocked the event loop for 10 ms.
FRAMES_PER_BATCH: Final = 50
# Shipped segments that are kept on disk while ingestion is down: those of one hour. Older segments
# are only in Redis.
MAX_SHIPPED: Final = 15_000
MAX_UNWRITTEN: Final = 10_000  # records of 300 to 700 bytes; the oldest are dropped first
EntryId: TypeAlias = tuple[int, int]  # milliseconds and number, as in Redis's entry IDs
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ShipmentReceipt:
    # The run ID of the Redis server that got the segment. Another server may not have it.
    server: str
    entry: EntryId  # the segment's last entry


@dataclass(frozen=True, slots=True)
class IngestionBacklog:
    server: str  # the run ID of the Redis server that was asked
    oldest: EntryId | None  # oldest entry that is not ingested; None: all are ingested


class JournalShipper(Protocol):
    async def send_batches(self, batches: list[bytes]) -> ShipmentReceipt:
        """Deliver encoded arrays of records, at least one. Raises OSError."""

    async def read_backlog(self) -> IngestionBacklog:
        """Return the oldest entry that is not ingested yet. Raises OSError."""


@dataclass(frozen=True, slots=True)
class _ShippedSegment:
    """A segment that was sent to Redis. It may not be ingested yet."""

    path: Path
    receipt: ShipmentReceipt

    def is_ingested(self, backlog: IngestionBacklog) -> bool:
        return backlog.oldest is None or self.receipt.entry < backlog.oldest


class JournalSegment:
    """One append-only file, locked by its writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_bytes = 0
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def append(self, data: bytes) -> None:
        """Append a frame as a whole or not at all. Raises OSError."""
        frame = _FRAME.pack(len(data)) + data
        if os.write(self._fd, frame) < len(frame):
            os.ftruncate(self._fd, self.num_bytes)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.num_bytes += len(frame)

    def close(self) -> None:
        os.close(self._fd)


class FileJournal:
    """The journal of one gateway process. Used on one event loop only."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._name = f"{time.time_ns()}-{os.getpid()}"
        self._num_segments = 0
        self._current = self._create_segment()
        self._unsent: list[Path] = []  # closed segments that must be sent, oldest first
        self._shipped: deque[_ShippedSegment] = deque()
        self._is_closed = False  # `close` was called, and nothing was appended since
        self._unwritten: deque[bytes] = deque(maxlen=MAX_UNWRITTEN)

    @property
    def num_waiting_segments(self) -> int:
        """The number of closed segments that Redis does not have, or has lost."""
        return len(self._unsent)

    @property
    def num_unwritten(self) -> int:
        """The number of records that are only in memory, because the disk is full."""
        return len(self._unwritten)

    def append(self, record: UsageRecord) -> None:
        """Write the record, or keep it in memory if it cannot be written."""
        data = encode_records([record])
        try:
            if self._is_closed:  # the next gateway sends records of completions that end this late
                self._current, self._is_closed = self._create_segment(), False
            self._current.append(data)
        except OSError as error:
            # Most likely the disk is full. The completion ends normally.
            log.error(
                "usage.journal_write_failed", error=type(error).__name__, held=len(self._unwritten)
            )
            self._unwritten.append(data)

    async def run(self, shipper: JournalShipper) -> None:
        """Ship until cancelled. An outage of Redis delays records, but no segment is lost."""
        self._unsent += await asyncio.to_thread(list, find_abandoned_segments(self._folder))
        pause_s = SHIP_EVERY_S
        while True:
            await asyncio.sleep(pause_s)
            delivered = await self.ship(shipper)
            pause_s = SHIP_EVERY_S if delivered else min(pause_s * 2, MAX_RETRY_S)

    async def ship(self, shipper: JournalShipper) -> bool:
        """Send all segments and the records in memory. Delete segments that are ingested.

        Return False if the next call must send the rest: sending failed, or the current segment
        could not be closed.
        """
        is_rotated = self._try_rotate_segment()
        try:
            await self._delete_ingested(shipper)
            while self._unsent:
                receipt = await ship_segment(self._unsent[0], shipper)
                path = self._unsent.pop(0)
                if receipt is not None:
                    await self._track_shipped(_ShippedSegment(path, receipt))
            while self._unwritten:
                # The record is removed before it is sent. Otherwise a full queue could drop it
                # during the sending, and the next record would then be removed in its place.
                await self._send_or_retain(self._unwritten.popleft(), shipper)
        except (OSError, TimeoutError) as error:
            log.warning("usage.delivery_failed", error=type(error).__name__)
            return False
        return is_rotated

    async def _delete_ingested(self, shipper: JournalShipper) -> None:
        """Delete ingested segments. Queue the segments again that another Redis server got."""
        if not self._shipped:
            return
        backlog = await shipper.read_backlog()
        lost_segments = [
            segment.path for segment in self._shipped if segment.receipt.server != backlog.server
        ]
        if lost_segments:
            log.warning("usage.redelivered", segments=len(lost_segments))
            self._unsent[:0] = lost_segments
        self._shipped = deque(
            segment for segment in self._shipped if segment.receipt.server == backlog.server
        )
        while self._shipped and self._shipped[0].is_ingested(backlog):
            await _delete_file(self._shipped.popleft().path)

    async def _track_shipped(self, shipped: _ShippedSegment) -> None:
        self._shipped.append(shipped)
        if len(self._shipped) > MAX_SHIPPED:
            await _delete_file(self._shipped.popleft().path)

    async def _send_or_retain(self, data: bytes, shipper: JournalShipper) -> None:
        try:
            await shipper.send_batches([data])
        except BaseException:
            self._unwritten.appendleft(data)
            raise

    async def close(self, shipper: JournalShipper) -> None:
        """Ship for the last time, and wait briefly for ingestion.

        Segments that are not ingested by then remain in the folder for the next gateway.
        """
        deadline_s = time.monotonic() + MAX_CLOSE_S
        while await self.ship(shipper) and self._shipped:
            if time.monotonic() > deadline_s:
                break
            await asyncio.sleep(SHIP_EVERY_S)
        self._current.close()
        self._is_closed = True
        if not self._current.num_bytes:
            await asyncio.to_thread(self._current.path.unlink, missing_ok=True)

    def _try_rotate_segment(self) -> bool:
        """Close the current segment and begin a new one, unless the current one is empty.

        If no file can be created, such as on a full disk, keep the current one and return False.
        """
        if not self._current.num_bytes:
            return True
        try:
            previous, self._current = self._current, self._create_segment()
        except OSError as error:
            log.warning("usage.segment_not_created", error=type(error).__name__)
            return False
        previous.close()
        self._unsent.append(previous.path)
        return True

    def _create_segment(self) -> JournalSegment:
        self._num_segments += 1
        return JournalSegment(self._folder / f"{self._name}.{self._num_segments:06}.log")


async def ship_segment(path: Path, shipper: JournalShipper) -> ShipmentReceipt | None:
    """Send a segment's frames in order.

    Return None if the segment was empty and is now deleted, or if another gateway has deleted it.
    Raises OSError.
    """
    try:
        frames = list(read_frames(await asyncio.to_thread(path.read_bytes)))
    except FileNotFoundError:
        return None  # another gateway considered the segment abandoned, and has sent it
    receipts = [
        # If cancelled here, the segment is kept and sent again. Ingestion counts it once.
        await shipper.send_batches(frames[start : start + FRAMES_PER_BATCH])
        for start in range(0, len(frames), FRAMES_PER_BATCH)
    ]
    if not receipts:
        await _delete_file(path)
        return None
    # The ID of the first server is stored. If another server took over, it may not have all frames.
    return ShipmentReceipt(receipts[0].server, receipts[-1].entry)


async def _delete_file(path: Path) -> None:
    await asyncio.to_thread(path.unlink, missing_ok=True)


def read_frames(data: bytes) -> Iterator[bytes]:
    """Yield the data of each complete frame of a segment.

    If the writer was killed, the last frame may be incomplete. It is skipped.
    """
    position = 0
    while position + _FRAME.size <= len(data):
        (length,) = _FRAME.unpack_from(data, position)
        position += _FRAME.size
        if position + length > len(data):
            return
        yield data[position : position + length]
        position += length


def find_abandoned_segments(folder: Path) -> Iterator[Path]:
    """Yield segments that no running writer has locked, oldest first."""
    for path in sorted(folder.glob("*.log")):
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another gateway has just sent and deleted it
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            yield path
        finally:
            os.close(fd)

"""Usage records on their way to Redis: first to a local file, then in batches to the stream.

A record is written to the current segment before `append` returns, so that the end of this process
loses none; a shipping task sends whole batches and deletes a segment once all of it is in Redis.
Segments that a gateway left behind are shipped by the next one that uses the folder. A batch that
was sent just before an end is sent again: ingest counts each record once, by its id.

    journal/
      <start>-<pid>.<n>.log    segments: frames of 4 bytes length + msgpack record array
                               locked (flock) by the gateway that writes them

What it does not promise: the loss of the machine itself (no fsync; a completion is not worth 5 ms).
"""

import asyncio
import errno
import fcntl
import os
import struct
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

import structlog

from caret.contracts.usage import UsageRecord, encode_records

_FRAME: Final = struct.Struct(">I")
SHIP_EVERY_S: Final = 0.25  # a shipment costs as much as a completion
MAX_RETRY_S: Final = 5.0
# At most so many frames to a pipeline: 500 in one held the loop for 10 ms.
FRAMES_PER_BATCH: Final = 50
MAX_UNWRITTEN: Final = 10_000  # records of about 300 bytes; the oldest go first
log = structlog.get_logger(__name__)


class Shipment(Protocol):
    async def send(self, batches: list[bytes]) -> None:
        """Delivers encoded record arrays; raises OSError when it could not."""


class Segment:
    """One append-only file, locked by its writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_bytes = 0
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def append(self, data: bytes) -> None:
        """Raises OSError, and then leaves no part of the frame behind."""
        frame = _FRAME.pack(len(data)) + data
        if os.write(self._fd, frame) < len(frame):
            os.ftruncate(self._fd, self.num_bytes)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.num_bytes += len(frame)

    def close(self) -> None:
        os.close(self._fd)


class FileJournal:
    """The journal of one gateway process. One event loop uses it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._name = f"{time.time_ns()}-{os.getpid()}"
        self._num_segments = 0
        self._current = self._new_segment()
        self._closed: list[Path] = []
        self._is_closed = False
        self._unwritten: deque[bytes] = deque(maxlen=MAX_UNWRITTEN)

    @property
    def num_waiting_segments(self) -> int:
        """Full files that Redis does not have yet."""
        return len(self._closed)

    @property
    def num_unwritten(self) -> int:
        """Records in memory only, because the disk takes none."""
        return len(self._unwritten)

    def append(self, record: UsageRecord) -> None:
        data = encode_records([record])
        try:
            if self._is_closed:  # a completion that ended after the shutdown: for the next gateway
                self._current, self._is_closed = self._new_segment(), False
            self._current.append(data)
        except OSError as error:
            # A full disk: hold it in memory, and let the completion end as it would.
            log.error("usage.unwritten", error=type(error).__name__, held=len(self._unwritten))
            self._unwritten.append(data)

    async def run(self, shipment: Shipment) -> None:
        """Ships until cancelled; an absent Redis delays, it loses nothing."""
        self._closed += await asyncio.to_thread(list, abandoned_segments(self._folder))
        pause_s = SHIP_EVERY_S
        while True:
            await asyncio.sleep(pause_s)
            delivered = await self.ship(shipment)
            pause_s = SHIP_EVERY_S if delivered else min(pause_s * 2, MAX_RETRY_S)

    async def ship(self, shipment: Shipment) -> bool:
        """Sends all that is there; False when the shipment failed and the rest has to wait."""
        try:
            self._rotate()
            while self._closed:
                await ship_segment(self._closed[0], shipment)
                del self._closed[0]
            while self._unwritten:
                # Taken out first: a full queue drops its head while the sending waits.
                await self._send_or_keep(self._unwritten.popleft(), shipment)
        except (OSError, TimeoutError) as error:
            log.warning("usage.undelivered", error=type(error).__name__)
            return False
        return True

    async def _send_or_keep(self, data: bytes, shipment: Shipment) -> None:
        try:
            await shipment.send([data])
        except BaseException:
            self._unwritten.appendleft(data)
            raise

    async def close(self, shipment: Shipment) -> None:
        """The last attempt; what stays undelivered waits in the folder for the next gateway."""
        await self.ship(shipment)
        self._current.close()
        self._is_closed = True
        if not self._current.num_bytes:
            await asyncio.to_thread(self._current.path.unlink, missing_ok=True)

    def _rotate(self) -> None:
        if not self._current.num_bytes:
            return
        full, self._current = self._current, self._new_segment()
        full.close()
        self._closed.append(full.path)

    def _new_segment(self) -> Segment:
        self._num_segments += 1
        return Segment(self._folder / f"{self._name}.{self._num_segments:06}.log")


async def ship_segment(path: Path, shipment: Shipment) -> None:
    """Sends a segment's frames in order, then deletes it. Raises what the shipment raises."""
    try:
        frames = list(read_frames(await asyncio.to_thread(path.read_bytes)))
    except FileNotFoundError:
        return  # another gateway took it for abandoned, and has shipped it
    for start in range(0, len(frames), FRAMES_PER_BATCH):
        # Cancelled here, the segment stays and is sent again: twice sent, once counted.
        await shipment.send(frames[start : start + FRAMES_PER_BATCH])
    await asyncio.to_thread(path.unlink, missing_ok=True)


def read_frames(data: bytes) -> Iterator[bytes]:
    """The whole frames of a segment; a torn last one (the writer was killed in it) is left out."""
    position = 0
    while position + _FRAME.size <= len(data):
        (length,) = _FRAME.unpack_from(data, position)
        position += _FRAME.size
        if position + length > len(data):
            return
        yield data[position : position + length]
        position += length


def abandoned_segments(folder: Path) -> Iterator[Path]:
    """Segments whose writer is gone: nobody holds their lock. Oldest first."""
    for path in sorted(folder.glob("*.log")):
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another gateway has just shipped it
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            yield path
        finally:
            os.close(fd)

"""The journal of usage records: failed shipments, killed gateways and full disks lose none."""

import asyncio
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RLIMIT_FSIZE, RLIMIT_NOFILE, getrlimit, setrlimit

import pytest
from structlog.testing import capture_logs

from caret.contracts.usage import OutcomeRecord, encode_records
from inference.recording.journal import (
    FRAMES_PER_BATCH,
    SHIP_EVERY_S,
    FileJournal,
    JournalSegment,
    ShipmentReceipt,
    find_abandoned_segments,
    read_frames,
)
from tests.fakes.journal_shipper import FakeShipper
from tests.fakes.polling import wait_until
from tests.fakes.usage import make_record

# The `chars` of each record are its number.
RECORDS = [make_record(number) for number in range(2 * FRAMES_PER_BATCH + 3)]


def _frame(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


async def test_records_are_shipped_in_order_and_in_batches(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    for record in RECORDS:
        journal.append(record)

    delivered = await journal.ship(shipper)

    assert delivered
    assert shipper.records == RECORDS
    assert max(map(len, shipper.calls)) == FRAMES_PER_BATCH


async def test_shipped_records_are_not_shipped_again(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    journal.append(RECORDS[0])
    await journal.ship(shipper)

    await journal.ship(shipper)

    assert shipper.records == RECORDS[:1]
    assert len(_segments(tmp_path)) == 1


async def test_a_record_is_in_its_file_before_append_returns(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)

    journal.append(RECORDS[0])

    (segment,) = _segments(tmp_path)
    assert list(read_frames(segment.read_bytes())) == [encode_records([RECORDS[0]])]


def test_only_the_owner_may_read_the_journal(tmp_path: Path) -> None:
    FileJournal(tmp_path / "journal")

    (segment,) = _segments(tmp_path / "journal")
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o700
    assert segment.stat().st_mode & 0o777 == 0o600


async def test_a_failed_shipment_keeps_all_records_in_order(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper(fails=True)
    journal.append(RECORDS[0])
    first = await journal.ship(shipper)
    journal.append(RECORDS[1])

    shipper.fails = False
    second = await journal.ship(shipper)

    assert (first, second) == (False, True)
    assert shipper.records == RECORDS[:2]


async def test_a_segment_whose_shipment_fails_is_shipped_again_completely(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper(max_calls=1)  # the second batch fails
    for record in RECORDS:
        journal.append(record)
    await journal.ship(shipper)

    shipper.max_calls = None
    await journal.ship(shipper)

    assert shipper.records == [*RECORDS[:FRAMES_PER_BATCH], *RECORDS]


async def test_closing_ships_all_records_and_deletes_the_segments(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    journal.append(RECORDS[0])

    await journal.close(shipper)

    assert shipper.records == RECORDS[:1]
    assert _segments(tmp_path) == []


async def test_undelivered_records_are_shipped_by_the_next_gateway(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    journal.append(RECORDS[0])
    await journal.close(FakeShipper(fails=True))
    shipper = FakeShipper()

    await _run_until_shipped(FileJournal(tmp_path), shipper, 1)

    assert shipper.records == RECORDS[:1]


async def test_a_shipped_segment_is_kept_until_it_is_ingested(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper(ingests=False)
    journal.append(RECORDS[0])
    await journal.ship(shipper)

    await journal.ship(shipper)

    assert len(_segments(tmp_path)) == 2  # the shipped one, and the one being written
    assert shipper.records == RECORDS[:1]


async def test_ingested_segments_are_deleted_and_later_ones_kept(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper(ingests=False)
    for record in RECORDS[:3]:
        journal.append(record)
        await journal.ship(shipper)
    _, second, *_later_segments = _segments(tmp_path)

    shipper.oldest = (2, 0)  # the first segment is ingested, and the second one waits
    await journal.ship(shipper)

    assert _segments(tmp_path)[0] == second


async def test_segments_are_shipped_again_after_the_server_changed(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper(ingests=False)
    for record in RECORDS[:2]:
        journal.append(record)
        await journal.ship(shipper)

    shipper.server = "second"
    await journal.ship(shipper)

    assert shipper.records == [*RECORDS[:2], *RECORDS[:2]]


async def test_ingested_segments_are_not_shipped_to_a_new_server(
    tmp_path: Path,
) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    journal.append(RECORDS[0])
    await journal.ship(shipper)
    await journal.ship(shipper)

    shipper.server = "second"
    await journal.ship(shipper)

    assert shipper.records == RECORDS[:1]


async def test_a_segment_is_shipped_again_completely_if_the_server_changes_meanwhile(
    tmp_path: Path,
) -> None:
    journal, shipper = FileJournal(tmp_path), ChangingServer(ingests=False)
    for record in RECORDS:
        journal.append(record)
    await journal.ship(shipper)

    await journal.ship(shipper)

    assert shipper.records == [*RECORDS, *RECORDS]


class ChangingServer(FakeShipper):
    """A shipper whose server is replaced by another one after the first delivery."""

    async def send_batches(self, batches: list[bytes]) -> ShipmentReceipt:
        receipt = await super().send_batches(batches)
        self.server = "second"
        return receipt


async def _run_until_shipped(journal: FileJournal, shipper: FakeShipper, num_records: int) -> None:
    running = asyncio.create_task(journal.run(shipper))
    try:
        await wait_until(lambda: len(shipper.records) >= num_records)
        await asyncio.sleep(1.2 * SHIP_EVERY_S)  # long enough to see a second delivery
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_running_journal_ships_records(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    journal.append(RECORDS[0])

    await _run_until_shipped(journal, shipper, 1)

    assert shipper.records == RECORDS[:1]


async def test_a_running_journal_continues_after_a_failed_shipment(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper(fails=True)
    journal.append(RECORDS[0])
    running = asyncio.create_task(journal.run(shipper))
    with capture_logs() as logs:
        await wait_until(lambda: bool(logs))

    shipper.fails = False
    await wait_until(lambda: bool(shipper.records))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert [entry["event"] for entry in logs] == ["usage.delivery_failed"]
    assert shipper.records == RECORDS[:1]


def test_the_segment_of_a_running_writer_is_not_abandoned(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    journal.append(RECORDS[0])

    assert list(find_abandoned_segments(tmp_path)) == []


WRITER = """
import sys, time
from pathlib import Path
from inference.recording.journal import JournalSegment
JournalSegment(Path(sys.argv[1])).append(b"a record")
print("written", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_segment_is_abandoned_only_if_its_writer_was_killed(
    tmp_path: Path, is_alive: bool
) -> None:
    path = tmp_path / "1-1.000001.log"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env=environment
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        if not is_alive:
            writer.send_signal(signal.SIGKILL)
            writer.wait()

        abandoned = list(find_abandoned_segments(tmp_path))

        writer.kill()
    assert abandoned == ([] if is_alive else [path])


def test_abandoned_segments_are_listed_oldest_first(tmp_path: Path) -> None:
    # A name has the start time of its gateway, the process ID, and the number of the segment.
    for name in ("20-1.000002.log", "10-1.000001.log", "20-1.000001.log"):
        (tmp_path / name).write_bytes(b"")

    names = [path.name for path in find_abandoned_segments(tmp_path)]

    assert names == ["10-1.000001.log", "20-1.000001.log", "20-1.000002.log"]


@pytest.mark.parametrize("num_lost", [1, 3, 6])
def test_an_incomplete_last_frame_is_ignored(num_lost: int) -> None:
    data = _frame(b"whole") + _frame(b"torn")

    assert list(read_frames(data[: len(data) - num_lost])) == [b"whole"]


def test_an_empty_segment_has_no_frames() -> None:
    assert list(read_frames(b"")) == []


async def test_a_segment_that_disappeared_is_skipped(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    journal.append(RECORDS[0])
    await journal.ship(FakeShipper(fails=True))
    _segments(tmp_path)[0].unlink()
    journal.append(RECORDS[1])

    delivered = await journal.ship(shipper)

    assert delivered
    assert shipper.records == [RECORDS[1]]


@contextmanager
def _full_disk(num_bytes: int) -> Iterator[None]:
    """Limit files to `num_bytes`: a write beyond that is short, and the next one fails."""
    limits, handler = getrlimit(RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    setrlimit(RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        with capture_logs():  # pytest writes log lines to a file, which would be limited, too
            yield
    finally:
        setrlimit(RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@contextmanager
def _no_more_files() -> Iterator[None]:
    """Let this process open no further file."""
    limits = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (3, limits[1]))  # fewer than are open already
    try:
        yield
    finally:
        setrlimit(RLIMIT_NOFILE, limits)


async def test_a_full_disk_delays_records_and_loses_none(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    with _full_disk(1_000):
        for record in RECORDS[:20]:
            journal.append(record)

    await journal.ship(shipper)

    assert sorted(r.chars for r in shipper.records if isinstance(r, OutcomeRecord)) == [*range(20)]


async def test_records_delayed_by_a_full_disk_survive_a_failed_shipment(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper(fails=True)
    with _full_disk(1):
        for record in RECORDS[:2]:
            journal.append(record)

    assert not await journal.ship(shipper)
    shipper.fails = False
    await journal.ship(shipper)

    assert shipper.records == RECORDS[:2]


async def test_records_written_after_a_full_disk_are_readable(tmp_path: Path) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    with _full_disk(300):
        for record in RECORDS[:3]:
            journal.append(record)
    journal.append(RECORDS[3])

    await journal.ship(shipper)

    assert sorted(r.chars for r in shipper.records if isinstance(r, OutcomeRecord)) == [*range(4)]


def test_a_partial_write_is_removed_from_the_segment(tmp_path: Path) -> None:
    segment = JournalSegment(tmp_path / "1.log")
    segment.append(b"whole")

    with _full_disk(20), pytest.raises(OSError, match="space"):
        segment.append(b"x" * 100)

    segment.close()
    assert (tmp_path / "1.log").read_bytes() == _frame(b"whole")


async def test_a_journal_that_cannot_open_a_segment_sends_the_rest_and_keeps_the_old_one(
    tmp_path: Path,
) -> None:
    journal, shipper = FileJournal(tmp_path), FakeShipper()
    journal.append(RECORDS[0])
    with _full_disk(1):
        journal.append(RECORDS[1])  # kept in memory

    with _no_more_files():
        delivered = await journal.ship(shipper)
    assert (delivered, shipper.records) == (False, [RECORDS[1]])

    journal.append(RECORDS[2])
    await journal.ship(shipper)
    assert shipper.records == [RECORDS[1], RECORDS[0], RECORDS[2]]

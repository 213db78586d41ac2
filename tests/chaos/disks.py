"""Full disks: a file takes the free space."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from caret.local.errors import ServiceFailed
from tests.chaos.environment import World
from tests.chaos.scenario import Fault, Scenario
from tests.chaos.stores import connect_as_superuser

_HOLD_S = 20.0
_BLOCK = bytes(64 * 1024)


@dataclass(slots=True)
class FullDisk(Fault):
    """The disk of a store is full; at the end there is space again."""

    store: str = ""
    # Also end segments of Postgres's write-ahead log until none is left. Without space for a new
    # segment, Postgres panics.
    exhausts_log: bool = False

    def begin(self, world: World) -> None:
        _fill(self._ballast(world))
        if self.exhausts_log:
            _exhaust_log(world)

    def end(self, world: World) -> None:
        self._ballast(world).unlink(missing_ok=True)

    def _ballast(self, world: World) -> Path:
        return world.disk_of(self.store) / "ballast"


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(_BLOCK)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        os.fsync(stream.fileno())


def _exhaust_log(world: World) -> None:
    """End segments of the write-ahead log until Postgres has none left, and panics.

    Raises ServiceFailed if Postgres does not panic.
    """
    try:
        with connect_as_superuser(world.database) as connection:
            # More than the segments that Postgres may have prepared: max_wal_size allows 8.
            for _ in range(16):
                # The message is written to the log: Postgres does not end an empty segment.
                connection.execute("SELECT pg_logical_emit_message(false, 'chaos', 'end')")
                connection.execute("SELECT pg_switch_wal()")
    except psycopg.OperationalError:
        return  # Postgres has panicked
    raise ServiceFailed("Postgres still has segments of its write-ahead log.")


def scenarios() -> Iterator[Scenario]:
    yield FullDisk("disk-full-valkey", hold_s=_HOLD_S, store="valkey")
    yield FullDisk("disk-full-postgres", hold_s=_HOLD_S, store="postgres")
    yield FullDisk("disk-full-postgres-log", hold_s=_HOLD_S, store="postgres", exhausts_log=True)

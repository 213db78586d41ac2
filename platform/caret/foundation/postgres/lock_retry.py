"""Migrations that wait for a lock make everybody wait behind them: they give up soon, try again.

A statement that changes a table wants it for itself. While it waits for a reader that takes its
time, each later query of the table waits behind it: one long report then stops all that is written.
So it waits for a few seconds only, lets the others through, and comes back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.errors import LockNotAvailable

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LockRetryPolicy:
    lock_s: int  # for which a statement waits for a lock
    statement_s: int  # for which one may run
    max_tries: int
    pause_s: float  # between tries: others are let through


def run_with_lock_retry(
    connection: BaseDatabaseWrapper,
    work: Callable[[], object],
    *,
    patience: LockRetryPolicy,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Does `work` again when it got no lock; it must begin where it was broken off, as Django's
    migrations do. Raises OperationalError when the last try got none either, or a statement took
    too long."""
    _limit(connection, lock_s=patience.lock_s, statement_s=patience.statement_s)
    try:
        for tried in range(1, patience.max_tries + 1):
            try:
                work()
            except OperationalError as error:
                is_last = tried == patience.max_tries
                if is_last or not isinstance(error.__cause__, LockNotAvailable):
                    raise
                logger.warning("migration.lock_not_available", tries=tried)
                pause(patience.pause_s)
            else:
                return
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout; RESET statement_timeout")


def _limit(connection: BaseDatabaseWrapper, *, lock_s: int, statement_s: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{lock_s}s"])
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [f"{statement_s}s"])

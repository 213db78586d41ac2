"""Migrations with a short lock timeout and retries, so that queries do not queue behind them.

A statement that changes a table needs an exclusive lock. While the statement waits for a long
query to end, all later queries of the table wait behind the statement. One long report would then
block all writes. So the statement fails after a few seconds, and is tried again after a pause, in
which the other queries run.
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
    lock_timeout_s: int  # how long a statement waits for a lock
    statement_timeout_s: int  # how long a statement may run
    max_tries: int
    pause_s: float  # between tries, to let other queries run


def run_with_lock_retry(
    connection: BaseDatabaseWrapper,
    work: Callable[[], object],
    *,
    policy: LockRetryPolicy,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Run `work`, and run it again if it gets no lock.

    Meanwhile, the connection has the timeouts of `policy`. `work` must continue where it was
    interrupted when it is run again, as Django's migrations do.

    Raises OperationalError if the last try gets no lock, or if a statement takes too long.
    """
    _set_timeouts(
        connection,
        lock_timeout_s=policy.lock_timeout_s,
        statement_timeout_s=policy.statement_timeout_s,
    )
    try:
        for attempt in range(1, policy.max_tries + 1):
            try:
                work()
            except OperationalError as error:
                is_last = attempt == policy.max_tries
                if is_last or not isinstance(error.__cause__, LockNotAvailable):
                    raise
                logger.warning("migration.lock_not_available", tries=attempt)
                pause(policy.pause_s)
            else:
                return
    finally:
        # If the connection was lost, the error of a RESET would replace the error of `work`.
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout; RESET statement_timeout")


def _set_timeouts(
    connection: BaseDatabaseWrapper, *, lock_timeout_s: int, statement_timeout_s: int
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{lock_timeout_s}s"])
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, false)", [f"{statement_timeout_s}s"]
        )

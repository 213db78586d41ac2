"""A lock in Redis that lets one process at a time run a task.

So a task that takes minutes does not occupy several workers, which other tasks need. A background
thread renews the lock until the block ends, because the duration of a task is not known. If the
process is killed, the lock expires after HOLD_S.

If a process cannot reach Redis for HOLD_S, it loses the lock and does not notice this. So if two
workers must never run an operation at once, it also needs a lock or a claim in the database.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

import redis
import structlog

HOLD_S: Final = 120.0
_RENEWALS_PER_LIFETIME: Final = 5  # the lock survives three failed renewals in a row
# The lock is a Redis key whose value is the holder's token. The scripts compare the token first: a
# process whose lock has expired must not change the lock of the next holder.
_IF_OURS: Final = "if redis.call('get', KEYS[1]) == ARGV[1] then "
_RENEW: Final = _IF_OURS + "redis.call('pexpire', KEYS[1], ARGV[2]) end"
_RELEASE: Final = _IF_OURS + "redis.call('del', KEYS[1]) end"
logger = structlog.get_logger(__name__)


@contextmanager
def redis_lock(connection: redis.Redis, name: str, *, hold_s: float = HOLD_S) -> Iterator[bool]:
    """Yield True if this process has got the lock, and False if another one holds it.

    Raises redis.RedisError, also at the end of the block.
    """
    lock_key, token = f"caret:lock:{name}", secrets.token_hex(8)
    if not connection.set(lock_key, token, nx=True, px=_to_ms(hold_s)):
        yield False
        return
    has_ended = Event()
    renewal = Thread(
        target=_renew_until_ended,
        args=(connection, lock_key, token, hold_s, has_ended),
        daemon=True,
    )
    renewal.start()
    try:
        yield True
    finally:
        has_ended.set()
        renewal.join()  # bounded by the connection's timeouts
        connection.eval(_RELEASE, 1, lock_key, token)


def _renew_until_ended(
    connection: redis.Redis, lock_key: str, token: str, hold_s: float, has_ended: Event
) -> None:
    while not has_ended.wait(hold_s / _RENEWALS_PER_LIFETIME):
        try:
            connection.eval(_RENEW, 1, lock_key, token, _to_ms(hold_s))
        except redis.RedisError as error:
            logger.warning("redis_lock.not_renewed", key=lock_key, error=type(error).__name__)


def _to_ms(seconds: float) -> int:
    return int(seconds * 1_000)

"""A lock in Redis that lets one worker at a time run a task.

Some tasks take minutes, and other tasks need the workers meanwhile. A background thread renews the
lock until the block ends, because no step has a known duration. If the process is killed, the lock
expires after HOLD_S.

A process that cannot reach Redis for that long loses the lock without notice. An operation that two
workers must never run at once therefore needs a database lock or a claim, too.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

import redis
import structlog

HOLD_S: Final = 120.0
_RENEWALS_PER_LIFETIME: Final = 5  # the lock survives three failures in a row
# Redis has no command to change a key only if it holds our token.
_IF_OURS: Final = "if redis.call('get', KEYS[1]) == ARGV[1] then "
_RENEW: Final = _IF_OURS + "redis.call('pexpire', KEYS[1], ARGV[2]) end"
_RELEASE: Final = _IF_OURS + "redis.call('del', KEYS[1]) end"
logger = structlog.get_logger(__name__)


@contextmanager
def redis_lock(connection: redis.Redis, name: str, *, hold_s: float = HOLD_S) -> Iterator[bool]:
    """Yield whether this process holds the lock. Raises redis.RedisError."""
    key, token = f"caret:lock:{name}", secrets.token_hex(8)
    if not connection.set(key, token, nx=True, px=_to_ms(hold_s)):
        yield False
        return
    has_ended = Event()
    renewal = Thread(
        target=_renew_until_ended, args=(connection, key, token, hold_s, has_ended), daemon=True
    )
    renewal.start()
    try:
        yield True
    finally:
        has_ended.set()
        renewal.join()  # bounded by the connection's timeouts
        connection.eval(_RELEASE, 1, key, token)


def _renew_until_ended(
    connection: redis.Redis, key: str, token: str, hold_s: float, has_ended: Event
) -> None:
    while not has_ended.wait(hold_s / _RENEWALS_PER_LIFETIME):
        try:
            connection.eval(_RENEW, 1, key, token, _to_ms(hold_s))
        except redis.RedisError as error:
            logger.warning("redis_lock.not_renewed", key=key, error=type(error).__name__)


def _to_ms(seconds: float) -> int:
    return int(seconds * 1_000)

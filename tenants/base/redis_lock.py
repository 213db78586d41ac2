"""One run at a time, of all workers: some take minutes, and other tasks need workers, too.

It is held on for as long as it goes on, by a thread, as no single step of it has a known end; who
was killed lets go after HOLD_S. Who could not reach Redis for so long is alone no more, and is not
told: what must never be done by two has a lock or a claim of its own.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

import redis
import structlog

HOLD_S: Final = 120.0
_HOLDS_ON_PER_HOLD: Final = 5  # so many, and all but the last may fail
# Change what is still ours; Redis has no such commands of its own.
_IF_OURS: Final = "if redis.call('get', KEYS[1]) == ARGV[1] then "
_HOLD_ON: Final = _IF_OURS + "redis.call('pexpire', KEYS[1], ARGV[2]) end"
_LET_GO: Final = _IF_OURS + "redis.call('del', KEYS[1]) end"
logger = structlog.get_logger(__name__)


@contextmanager
def redis_lock(connection: redis.Redis, name: str, *, hold_s: float = HOLD_S) -> Iterator[bool]:
    """Whether we are. Raises redis.RedisError."""
    key, word = f"caret:lock:{name}", secrets.token_hex(8)
    if not connection.set(key, word, nx=True, px=_ms(hold_s)):
        yield False
        return
    over = Event()
    held = Thread(target=_hold_on, args=(connection, key, word, hold_s, over), daemon=True)
    held.start()
    try:
        yield True
    finally:
        over.set()
        held.join()  # the connection's timeouts bound it
        connection.eval(_LET_GO, 1, key, word)


def _hold_on(connection: redis.Redis, key: str, word: str, hold_s: float, over: Event) -> None:
    while not over.wait(hold_s / _HOLDS_ON_PER_HOLD):
        try:
            connection.eval(_HOLD_ON, 1, key, word, _ms(hold_s))
        except redis.RedisError as error:
            logger.warning("redis_lock.not_renewed", key=key, error=type(error).__name__)


def _ms(seconds: float) -> int:
    return int(seconds * 1_000)

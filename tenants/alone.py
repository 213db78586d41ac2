"""One run at a time, of all workers: an export takes minutes, and other tasks need workers, too.

Who was killed lets go after HOLD_S; whoever then begins beside one that is only slow is kept from
its builds by their claims.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import redis

# A run ends its turns after 20 s, and a last file takes minutes at most.
HOLD_S: Final = 120
# Deletes what is still ours; Redis has no such command of its own.
_LET_GO: Final = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end"


@contextmanager
def alone(connection: redis.Redis, name: str) -> Iterator[bool]:
    """Whether we are."""
    key, word = f"caret:alone:{name}", secrets.token_hex(8)
    is_alone = bool(connection.set(key, word, nx=True, ex=HOLD_S))
    try:
        yield is_alone
    finally:
        if is_alone:
            connection.eval(_LET_GO, 1, key, word)

"""Retrieval's streams in Redis, as the worker reads them, and its answers to gateways.

What is taken is gone from Redis at once, whatever becomes of it: the gateway asks again.
"""

from typing import Any, Final

import redis

from caret.contracts.retrieval import FIELD, MAX_AGE_S, MAX_FOUND_QUEUED, answers_key

# KEYS: a stream. ARGV: entries at most. Returns the oldest ones, which are in it no longer.
_TAKE_SCRIPT: Final = """
local entries = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[1])
for _, entry in ipairs(entries) do redis.call('XDEL', KEYS[1], entry[1]) end
return entries
"""


class RetrievalStreams:
    def __init__(self, connection: redis.Redis) -> None:
        self._connection = connection

    def take(self, stream: str, *, count: int) -> list[bytes]:
        """Sealed messages, oldest first, `count` at most; b"" for an entry that holds none."""
        entries: Any = self._connection.eval(_TAKE_SCRIPT, 1, stream, str(count))
        return [_message(fields) for _, fields in entries]

    def answer(self, gateway: str, sealed: bytes) -> None:
        """For a gateway that takes no answers any more they are gone after MAX_AGE_S."""
        key = answers_key(gateway)
        pipeline = self._connection.pipeline(transaction=True)
        pipeline.rpush(key, sealed)
        pipeline.ltrim(key, -MAX_FOUND_QUEUED, -1)
        pipeline.expire(key, MAX_AGE_S)
        pipeline.execute()


def _message(fields: list[bytes]) -> bytes:
    """The script's answer lists names and values in turn."""
    return dict(zip(fields[::2], fields[1::2], strict=True)).get(FIELD.encode(), b"")

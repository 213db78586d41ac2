"""Retrieval's streams in Redis, as the worker reads them, and its answers to gateways.

What is taken is gone from Redis at once, whatever becomes of it: the gateway asks again.
"""

from typing import Any

import redis

from caret.contracts.retrieval import MAX_AGE_S, MAX_FOUND_QUEUED, answers_key
from caret.contracts.sealed_message import TAKE_SCRIPT, extract_sealed


class RetrievalStreams:
    def __init__(self, connection: redis.Redis) -> None:
        self._connection = connection

    def read(self, stream: str, *, count: int) -> list[bytes]:
        """Sealed messages, oldest first, `count` at most; b"" for an entry that holds none."""
        entries: Any = self._connection.eval(TAKE_SCRIPT, 1, stream, str(count))
        return [extract_sealed(fields) for _, fields in entries]

    def send_result(self, gateway: str, sealed: bytes) -> None:
        """For a gateway that takes no answers any more they are gone after MAX_AGE_S."""
        key = answers_key(gateway)
        pipeline = self._connection.pipeline(transaction=True)
        pipeline.rpush(key, sealed)
        pipeline.ltrim(key, -MAX_FOUND_QUEUED, -1)
        pipeline.expire(key, MAX_AGE_S)
        pipeline.execute()

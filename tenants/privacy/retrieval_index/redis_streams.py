"""Retrieval messages in Redis: streams of queries and files from gateways, and lists of results.

A message is removed from Redis when it is read. If it is then lost, the gateway sends its query or
file again with a later request.
"""

from typing import Any

import redis

from caret.contracts.retrieval import MAX_AGE_S, MAX_RESULTS_QUEUED, build_results_key
from caret.contracts.sealed_message import TAKE_SCRIPT, extract_sealed


class RetrievalStreams:
    def __init__(self, connection: redis.Redis) -> None:
        self._connection = connection

    def dequeue(self, stream: str, *, count: int) -> list[bytes]:
        """Remove up to `count` encrypted messages from the stream and return them, oldest first.

        b"" stands for an entry of the stream that contains no message.
        """
        entries: Any = self._connection.eval(TAKE_SCRIPT, 1, stream, str(count))
        return [extract_sealed(fields) for _, fields in entries]

    def send_result(self, gateway: str, message: bytes) -> None:
        """Send an encrypted result. The gateway's list expires MAX_AGE_S after its last result."""
        key = build_results_key(gateway)
        pipeline = self._connection.pipeline(transaction=True)
        pipeline.rpush(key, message)
        pipeline.ltrim(key, -MAX_RESULTS_QUEUED, -1)  # keeps the newest
        pipeline.expire(key, MAX_AGE_S)
        pipeline.execute()

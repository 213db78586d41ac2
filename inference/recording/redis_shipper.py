"""Delivers usage records to the Redis stream."""

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.usage import USAGE_FIELD, USAGE_STREAM
from inference.recording.journal import EntryId, IngestionBacklog, ShipmentReceipt


class RedisShipment:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def send_batches(self, batches: list[bytes]) -> ShipmentReceipt:
        """At least one batch; each is an entry of its own. Raises OSError when Redis cannot be
        reached.

        All of them are there or, after an error, perhaps some: sending again does no harm.
        """
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                # Queues only; a pipeline is sent by `execute`.
                _ = pipeline.info("server")
                for batch in batches:
                    _ = pipeline.xadd(USAGE_STREAM, {USAGE_FIELD: batch})
                server, *entries = await pipeline.execute()
        except RedisError as error:
            raise OSError(f"usage stream: {type(error).__name__}") from error
        return ShipmentReceipt(_run_of(server), _entry_id(entries[-1]))

    async def read_backlog(self) -> IngestionBacklog:
        """Ingest deletes entries, in whatever order: what is older than the oldest is in the
        tables. Raises OSError when Redis cannot be reached."""
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                _ = pipeline.info("server")
                _ = pipeline.xrange(USAGE_STREAM, count=1)
                server, entries = await pipeline.execute()
        except RedisError as error:
            raise OSError(f"usage stream: {type(error).__name__}") from error
        return IngestionBacklog(_run_of(server), _entry_id(entries[0][0]) if entries else None)


def _run_of(server: dict[str, Any]) -> str:
    """Another one after each start, and on each replica."""
    return str(server["run_id"])


def _entry_id(text: bytes) -> EntryId:
    milliseconds, _, number = text.partition(b"-")
    return int(milliseconds), int(number)

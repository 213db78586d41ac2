"""Delivers usage records to the Redis stream."""

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.usage import USAGE_FIELD, USAGE_STREAM
from inference.recording.journal import EntryId, IngestionBacklog, ShipmentReceipt


class RedisShipper:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def send_batches(self, batches: list[bytes]) -> ShipmentReceipt:
        """Send the batches, at least one. Each becomes a stream entry.

        After an error, some entries may have been written: sending them again is harmless. Raises
        OSError.
        """
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                # These calls only queue commands; `execute` sends them.
                _ = pipeline.info("server")
                for batch in batches:
                    _ = pipeline.xadd(USAGE_STREAM, {USAGE_FIELD: batch})
                server, *entries = await pipeline.execute()
        except RedisError as error:
            raise OSError(f"usage stream: {type(error).__name__}") from error
        return ShipmentReceipt(_run_id(server), _entry_id(entries[-1]))

    async def read_backlog(self) -> IngestionBacklog:
        """Return the oldest entry of the stream.

        Ingestion deletes the entries that it has ingested, in any order. So all entries that are
        older than the oldest one in the stream have been ingested. Raises OSError.
        """
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                _ = pipeline.info("server")
                _ = pipeline.xrange(USAGE_STREAM, count=1)
                server, entries = await pipeline.execute()
        except RedisError as error:
            raise OSError(f"usage stream: {type(error).__name__}") from error
        return IngestionBacklog(_run_id(server), _entry_id(entries[0][0]) if entries else None)


def _run_id(server: dict[str, Any]) -> str:
    """Return the run ID, which differs after each start and on each replica."""
    return str(server["run_id"])


def _entry_id(text: bytes) -> EntryId:
    milliseconds, _, number = text.partition(b"-")
    return int(milliseconds), int(number)

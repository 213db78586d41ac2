"""Delivers the batches of the usage journal to a Redis stream."""

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.usage import USAGE_FIELD, USAGE_STREAM
from inference.recording.journal import EntryId, IngestionBacklog, ShipmentReceipt


class RedisShipper:
    """A JournalShipper."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def send_batches(self, batches: list[bytes]) -> ShipmentReceipt:
        """Send the batches, at least one. Each becomes an entry of the stream.

        After an error, some entries may have been written. Sending their batches again is harmless.
        Raises OSError.
        """
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                # These calls only queue commands; `execute` sends them.
                _ = pipeline.info("server")
                for batch in batches:
                    _ = pipeline.xadd(USAGE_STREAM, {USAGE_FIELD: batch})
                server_info, *entry_ids = await pipeline.execute()
        except RedisError as error:
            raise OSError(f"usage stream: {type(error).__name__}") from error
        return ShipmentReceipt(_run_id(server_info), _parse_entry_id(entry_ids[-1]))

    async def read_backlog(self) -> IngestionBacklog:
        """Return the oldest entry of the stream.

        Ingestion deletes ingested entries, in any order. So all entries that are older than the
        oldest one in the stream have been ingested. Raises OSError.
        """
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                _ = pipeline.info("server")
                _ = pipeline.xrange(USAGE_STREAM, count=1)
                server_info, entries = await pipeline.execute()
        except RedisError as error:
            raise OSError(f"usage stream: {type(error).__name__}") from error
        # An entry of the stream is a pair: its ID and its fields.
        oldest_id = _parse_entry_id(entries[0][0]) if entries else None
        return IngestionBacklog(_run_id(server_info), oldest_id)


def _run_id(server_info: dict[str, Any]) -> str:
    """Return the run ID. Each Redis server has a new one after each start."""
    return str(server_info["run_id"])


def _parse_entry_id(text: bytes) -> EntryId:
    milliseconds, _, number = text.partition(b"-")
    return int(milliseconds), int(number)

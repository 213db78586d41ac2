"""Delivers usage records to the Redis stream."""

from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.usage import USAGE_FIELD, USAGE_STREAM


class RedisShipment:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def send(self, batches: list[bytes]) -> None:
        """Each batch is an entry of its own. Raises OSError when Redis cannot be reached.

        All of them are there or, after an error, perhaps some: sending again does no harm.
        """
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for batch in batches:
                    # Queues only; a pipeline is sent by `execute`.
                    _ = pipeline.xadd(USAGE_STREAM, {USAGE_FIELD: batch})
                await pipeline.execute()
        except RedisError as error:
            raise OSError(f"usage stream: {type(error).__name__}") from error

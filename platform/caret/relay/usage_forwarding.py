"""Forwards the usage records of a region's gateways home, in order, each entry at least once.

An entry is deleted from the region's stream after home has stored it. If the relay stops in
between, the entry is sent again. Ingestion counts each record once, by its ID.
"""

from typing import Any, Final, cast

import structlog
from redis.asyncio import Redis

from caret.contracts.usage import USAGE_STREAM

BATCH_ENTRIES: Final = 50
Entry = tuple[bytes, dict[bytes, bytes]]
log = structlog.get_logger(__name__)


class UsageForwarder:
    def __init__(self, home: Redis, here: Redis) -> None:
        self._home = home
        self._here = here

    async def forward(self) -> int:
        """Forward a batch and return its number of entries; after an error they stay.

        Raises RedisError, OSError.
        """
        entries = cast(
            "list[Entry]", await cast(Any, self._here.xrange(USAGE_STREAM, count=BATCH_ENTRIES))
        )
        if not entries:
            return 0
        async with self._home.pipeline(transaction=False) as pipeline:
            for _, fields in entries:
                _ = pipeline.xadd(USAGE_STREAM, cast(Any, fields))
            await pipeline.execute()
        # If cancelled here, they are sent again, but counted once.
        await self._here.xdel(USAGE_STREAM, *(identifier for identifier, _ in entries))
        return len(entries)

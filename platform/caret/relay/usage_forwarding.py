"""Homeward: what gateways of the region have recorded, in their order, each entry at least once.

An entry leaves the region's stream after home has it. Cut off in between, it is sent again: ingest
counts each record once, by its id.
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
        """How many entries went home. Raises RedisError or OSError; then they stay."""
        entries = cast(
            "list[Entry]", await cast(Any, self._here.xrange(USAGE_STREAM, count=BATCH_ENTRIES))
        )
        if not entries:
            return 0
        async with self._home.pipeline(transaction=False) as pipeline:
            for _, fields in entries:
                _ = pipeline.xadd(USAGE_STREAM, cast(Any, fields))
            await pipeline.execute()
        # Cancelled here, they are sent again: twice sent, once counted.
        await self._here.xdel(USAGE_STREAM, *(identifier for identifier, _ in entries))
        return len(entries)

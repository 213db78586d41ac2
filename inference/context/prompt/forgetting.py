"""Evicts customers' texts from caches in time, even if no requests arrive."""

import asyncio
from collections.abc import Collection
from typing import Final

from inference.context.prompt.prompt_writer import PromptWriter

EVERY_S: Final = 5.0  # maximum delay of an eviction


async def evict_expired_forever(
    writers: Collection[PromptWriter], *, every_s: float = EVERY_S
) -> None:
    """Evict expired entries until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        for writer in writers:
            writer.evict_expired()

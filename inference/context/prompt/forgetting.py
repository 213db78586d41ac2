"""Forgets customers' texts in time where no request comes by to do so."""

import asyncio
from collections.abc import Collection
from typing import Final

from inference.context.prompt.prompt_writer import PromptWriter

EVERY_S: Final = 5.0  # so late may it be


async def evict_expired_forever(
    writers: Collection[PromptWriter], *, every_s: float = EVERY_S
) -> None:
    """Runs until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        for writer in writers:
            writer.evict_expired()

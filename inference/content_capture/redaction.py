"""Removes secrets from content before it leaves the gateway.

Content with a secret across the cursor is not sent at all.
"""

from typing import Final

import msgspec

from caret.contracts.captured_content import CapturedCompletion, ChatTurn, Item
from inference.retrieval.redaction import redact_in_slices

_NO_PATH: Final = ""


async def redact_content(item: Item) -> Item | None:
    """Return the redacted item; None: a secret spans the cursor, so a part of it would remain."""
    if not isinstance(item, CapturedCompletion):
        return msgspec.structs.replace(item, text=await redact_in_slices(_NO_PATH, item.text))
    if await _hides_a_secret_at_the_cursor(item):
        return None
    return msgspec.structs.replace(
        item,
        prefix=await redact_in_slices(item.path, item.prefix),
        suffix=await redact_in_slices(item.path, item.suffix),
        completion=await redact_in_slices(item.path, item.completion),
        chat=tuple(
            [ChatTurn(turn.role, await redact_in_slices(_NO_PATH, turn.text)) for turn in item.chat]
        ),
    )


async def _hides_a_secret_at_the_cursor(item: CapturedCompletion) -> bool:
    """Check each line at the cursor, with and without the completion."""
    before, after = item.prefix.rpartition("\n")[2], item.suffix.partition("\n")[0]
    whole = f"{before}{item.completion}{after}"
    lines = {before + after, *whole.split("\n")}
    # The first half of a private key is found by its header in either part.
    return any([await redact_in_slices(item.path, line) != line for line in lines if line.strip()])

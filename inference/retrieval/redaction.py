"""Removes secrets from text, before the text leaves the gateway.

The text is processed in slices. Other tasks on the event loop run between two slices.
"""

import asyncio
from typing import Final

from inference.context.redaction.redact import (
    MAX_LINE_CHARS,
    file_type,
    find_secret_spans,
    mask_spans,
    redact_private_keys,
)

# A slice of ordinary code takes about 0.3 ms. Text that is designed to be slow takes 2 ms.
_SLICE_CHARS: Final = 2_000
_MIN_LINE_CHARS: Final = 100  # a shorter line takes as much time as a line of this length


async def redact_in_slices(path: str, text: str) -> str:
    """Return the text without its secrets. `path` selects the rules of its file type."""
    kind, lines, num_chars = file_type(path), [], 0  # num_chars: of the current slice
    for line in redact_private_keys(text).split("\n"):
        spans: list[tuple[int, int]] = []
        for part_spans in find_secret_spans(line, kind):  # a long line has several parts
            spans += part_spans
            num_chars += max(_MIN_LINE_CHARS, min(len(line), MAX_LINE_CHARS))
            if num_chars >= _SLICE_CHARS:
                num_chars = 0
                # If the task is cancelled here, nothing was sent.
                await asyncio.sleep(0)
        lines.append(mask_spans(line, spans))
    return "\n".join(lines)

"""Secrets leave a text before it leaves the gateway, a few lines at a time: the event loop has
other things to do."""

import asyncio
from typing import Final

from inference.context.redact import file_type, redact_line, without_private_keys

_LINES_AT_ONCE: Final = 20  # about 0.3 ms


async def redacted(path: str, text: str) -> str:
    kind = file_type(path)
    lines = without_private_keys(text).split("\n")
    for start in range(0, len(lines), _LINES_AT_ONCE):
        part = slice(start, start + _LINES_AT_ONCE)
        lines[part] = [redact_line(line, kind) for line in lines[part]]
        # Cancelled here, nothing was sent.
        await asyncio.sleep(0)
    return "\n".join(lines)

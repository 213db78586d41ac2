"""Which part of a long text is looked at.

A window that slides with the cursor would begin at another line on each keystroke, and the engine's
prefix cache would hit nothing. So it begins at a line that is chosen by its own content: it stays
put while the text around the cursor changes, and nothing has to be remembered to keep it there.
"""

import zlib
from typing import Final

# One line in so many may begin a window: at most about this many lines are given up.
ANCHOR_EVERY: Final = 16
# But never more than this share of the window.
_MAX_GIVEN_UP: Final = 1 / 3


def tail(text: str, *, max_chars: int) -> str:
    """The end of `text`, at most `max_chars`, beginning at an anchor line where there is one."""
    if len(text) <= max_chars:
        return text
    start = text.find("\n", len(text) - max_chars) + 1
    if start in (0, len(text)):  # one endless line, perhaps just ended
        return text[len(text) - max_chars :]
    return text[_first_anchor(text, start) :]


def head(text: str, *, max_chars: int) -> str:
    """The beginning of `text`, at most `max_chars`, whole lines where possible."""
    if len(text) <= max_chars:
        return text
    end = text.rfind("\n", 0, max_chars) + 1
    return text[: end or max_chars]


def _first_anchor(text: str, start: int) -> int:
    """The first line at or after `start` that is an anchor; `start` when none is near."""
    position = start
    last = start + int((len(text) - start) * _MAX_GIVEN_UP)
    while (end := text.find("\n", position, last)) >= 0:
        line = text[position:end].strip()
        if line and zlib.crc32(line.encode("utf-8", "surrogatepass")) % ANCHOR_EVERY == 0:
            return position
        position = end + 1
    return start

"""Which part of a long text is looked at.

A window that slides with the cursor would begin at another line on each keystroke, and the engine's
prefix cache would hit nothing. So it begins at a line that is chosen by its own content: it stays
put while the text around the cursor changes, and nothing has to be remembered to keep it there.
"""

import zlib
from collections.abc import Sequence
from typing import Final

# One line in so many may begin a window: at most about this many lines are given up.
ANCHOR_EVERY: Final = 16
# But never more than this share of the window.
MAX_GIVEN_UP: Final = 1 / 3


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


def last_lines(text: str, *, max_chars: int) -> str:
    """The end of `text`, at most `max_chars`, whole lines where there are any."""
    if len(text) <= max_chars:
        return text
    start = text.find("\n", len(text) - max_chars) + 1
    return text[len(text) - max_chars if start in (0, len(text)) else start :]


def is_anchor(line: str) -> bool:
    """Whether a window may begin with this line: by its content alone."""
    content = line.strip()
    digest = zlib.crc32(content.encode("utf-8", "surrogatepass"))
    return bool(content) and digest % ANCHOR_EVERY == 0


def last_anchor(lines: Sequence[str], start: int, end: int) -> int:
    """The last anchor before `end`, not before `start`; `start` when there is none."""
    return next((place for place in range(end - 1, start, -1) if is_anchor(lines[place])), start)


def last_stable_lines(text: str, *, num_lines: int) -> str:
    """So many lines and a few more, up to an anchor or the line before the last: what they are
    changes once in a while only, not with every keystroke or every line."""
    lines = text.splitlines()[:-1][-num_lines - ANCHOR_EVERY :]
    end = last_anchor(lines, max(0, len(lines) - ANCHOR_EVERY), len(lines))
    return "\n".join(lines[max(0, end - num_lines) : end])


def _first_anchor(text: str, start: int) -> int:
    """The first line at or after `start` that is an anchor; `start` when none is near."""
    position = start
    last = start + int((len(text) - start) * MAX_GIVEN_UP)
    while (end := text.find("\n", position, last)) >= 0:
        if is_anchor(text[position:end]):
            return position
        position = end + 1
    return start

"""Windows: the part of a long text that goes into a prompt.

If the window moved with the cursor, it would begin at another character after each keystroke, and
the prefix cache would never hit. So a window begins at an anchor if there is one: a line chosen by
its own content. The anchor stays the same while the text around the cursor changes, without any
stored state.
"""

import zlib
from collections.abc import Sequence
from typing import Final

# About one line in this many is an anchor. So a window skips about this many lines on average.
ANCHOR_EVERY: Final = 16
# A window never skips more than this share of its text to begin at an anchor.
MAX_SKIPPED_SHARE: Final = 1 / 3


def tail(text: str, *, max_chars: int) -> str:
    """Return the end of `text`, at most `max_chars`, beginning at an anchor if one is near."""
    if len(text) <= max_chars:
        return text
    start = text.find("\n", len(text) - max_chars) + 1
    if start in (0, len(text)):  # the end is one very long line, perhaps with its line break
        return text[len(text) - max_chars :]
    return text[_first_anchor(text, start) :]


def head(text: str, *, max_chars: int) -> str:
    """Return the beginning of `text`, at most `max_chars`, in whole lines if possible."""
    if len(text) <= max_chars:
        return text
    end = text.rfind("\n", 0, max_chars) + 1
    return text[: end or max_chars]


def last_lines(text: str, *, max_chars: int) -> str:
    """Return the end of `text`, at most `max_chars`, in whole lines if there are any."""
    if len(text) <= max_chars:
        return text
    start = text.find("\n", len(text) - max_chars) + 1
    if start in (0, len(text)):  # the end is one very long line, perhaps with its line break
        return text[len(text) - max_chars :]
    return text[start:]


def is_anchor(line: str) -> bool:
    """Return whether a window may begin with this line, by its content alone."""
    content = line.strip()
    digest = zlib.crc32(content.encode("utf-8", "surrogatepass"))
    return bool(content) and digest % ANCHOR_EVERY == 0


def last_anchor(lines: Sequence[str], start: int, end: int) -> int:
    """Return the index of the last anchor in [start, end), or `start` if there is none."""
    return next((index for index in range(end - 1, start, -1) if is_anchor(lines[index])), start)


def last_stable_lines(text: str, *, num_lines: int) -> str:
    """Return up to `num_lines` lines before the last anchor near the end of the text.

    The result changes only occasionally, not with every keystroke or every new line.
    """
    finished_lines = text.splitlines()[:-1]  # without the line being typed
    lines = finished_lines[-num_lines - ANCHOR_EVERY :]
    end = last_anchor(lines, max(0, len(lines) - ANCHOR_EVERY), len(lines))
    return "\n".join(lines[max(0, end - num_lines) : end])


def _first_anchor(text: str, start: int) -> int:
    """Return the position of the first anchor at or after `start`, or `start` if none is near."""
    position = start
    last = start + int((len(text) - start) * MAX_SKIPPED_SHARE)
    while (end := text.find("\n", position, last)) >= 0:
        if is_anchor(text[position:end]):
            return position
        position = end + 1
    return start

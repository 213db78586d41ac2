"""Points at which a text can be split into lines without changing its tokens.

Some tokenizers join a line break with the text before it, others with the indentation after it. The
`tokenizer` module finds out where a tokenizer can split; this module implements both ways. It does
not use regular expressions with lookbehind: they take four times as long, and a new window is split
after every finished line.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# A line break that no other line break follows.
_SETTLED_BREAK: Final = re.compile(r"\n(?=[^\r\n])")
_BREAK_AFTER_TEXT: Final = re.compile(r"\S\n")
_END_CHARS: Final = 256  # at the end of the text, searched first for the last break


@dataclass(frozen=True, slots=True)
class SplitRule:
    split: Callable[[str], list[str]]  # returns the lines, which join to the text; at least one
    last_start: Callable[[str], int]  # returns the start of the last line
    first_end: Callable[[str], int]  # returns the end of the first line


def _split_after_break(text: str) -> list[str]:
    """Split after each line break that no other line break follows."""
    lines: list[str] = []
    current: list[str] = []  # the current line, split at its line breaks
    for part in text.split("\n"):
        if current and part and part[0] != "\r":
            lines.append("\n".join((*current, "")))
            current = [part]
        else:
            current.append(part)
    return [*lines, "\n".join(current)]


def _last_start_after_break(text: str) -> int:
    match = _find_last(_SETTLED_BREAK, text)
    return match.end() if match else 0


def _first_end_after_break(text: str) -> int:
    match = _SETTLED_BREAK.search(text)
    return match.end() if match else len(text)


def _split_before_break(text: str) -> list[str]:
    """Split before each line break that follows a non-blank character."""
    first, *later_lines = text.split("\n")
    lines: list[str] = []
    current = [first]
    for part in later_lines:
        if not current[-1] or current[-1][-1].isspace():
            current.append(part)
        else:
            lines.append("\n".join(current))
            current = ["", part]
    return [*lines, "\n".join(current)]


def _last_start_before_break(text: str) -> int:
    match = _find_last(_BREAK_AFTER_TEXT, text)
    return match.end() - 1 if match else 0


def _first_end_before_break(text: str) -> int:
    match = _BREAK_AFTER_TEXT.search(text)
    return match.end() - 1 if match else len(text)


def _find_last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match.

    The end of the text is searched first, where the match usually is. Searching all of an unusual
    text, such as half a million line breaks, takes long.
    """
    size = _END_CHARS
    while True:
        start = max(0, len(text) - size)
        last: re.Match[str] | None = None
        for match in pattern.finditer(text, start):
            last = match
        if last is not None or start == 0:
            return last
        size *= 16


AFTER_NEWLINE: Final = SplitRule(
    _split_after_break, _last_start_after_break, _first_end_after_break
)
BEFORE_NEWLINE: Final = SplitRule(
    _split_before_break, _last_start_before_break, _first_end_before_break
)

"""The text of an open file as lines, with LSP's positions, which count UTF-16 code units. Pure.

Lines end with LF, CRLF or CR, which may be mixed; each line contains its line end. An edit of a
range builds only the changed lines anew, so it is fast even in a long file.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Beyond the basic multilingual plane: two code units each.
_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a text. One outside of the text means the nearest valid one, as in LSP."""

    line: int  # from 0
    units: int  # UTF-16 code units from the start of the line


@dataclass(frozen=True, slots=True)
class LineChange:
    """The whole lines that a change touches, with their line ends."""

    start_line: int  # from 0
    old_lines: tuple[str, ...]  # before the change
    new_lines: tuple[str, ...]  # after the change


@dataclass(frozen=True, slots=True)
class TextEdit:
    """The effect of a change.

    An editor may replace text by text with the same start, for example a word by a longer one. The
    edit leaves out this start. If the whole text is replaced, it also leaves out an equal end.
    """

    at: int  # characters from the start of the text
    deleted: int  # number of characters
    inserted: str
    lines: LineChange = field(default=LineChange(0, (), ()), compare=False, repr=False)


class TextDocument:
    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def to_offset(self, position: Position) -> int:
        """Return the number of characters before the position."""
        line, column = self._locate(position)
        return sum(map(len, self._lines[:line])) + column

    def text_before(self, position: Position, *, max_chars: int) -> str:
        """Return the text before the position, or its last lines with at most `max_chars`.

        Only the position's own line may be cut: if it alone is too long, its end is returned.
        """
        line, column = self._locate(position)
        head = self._lines[line][:column] if line < len(self._lines) else ""
        parts = [head[-max_chars:]]
        num_chars_left = max_chars - len(head)
        for line_text in reversed(self._lines[:line]):
            num_chars_left -= len(line_text)
            if num_chars_left < 0:
                break
            parts.append(line_text)
        return "".join(reversed(parts))

    def text_after(self, position: Position, *, max_chars: int) -> str:
        """Return the text after the position, or its first lines with at most `max_chars`.

        Only the position's own line may be cut: if it alone is too long, its start is returned.
        """
        line, column = self._locate(position)
        tail = self._lines[line][column:] if line < len(self._lines) else ""
        parts = [tail[:max_chars]]
        num_chars_left = max_chars - len(tail)
        for line_text in self._lines[line + 1 :]:
            num_chars_left -= len(line_text)
            if num_chars_left < 0:
                break
            parts.append(line_text)
        return "".join(parts)

    def replace(self, start: Position, end: Position, text: str) -> TextEdit:
        """Replace the text between two positions, in any order, by `text`."""
        (first, from_column), (last, to_column) = sorted((self._locate(start), self._locate(end)))
        at = sum(map(len, self._lines[:first])) + from_column
        old_lines = self._lines[first : last + 1]
        head = old_lines[0][:from_column] if old_lines else ""
        tail = old_lines[last - first][to_column:] if last - first < len(old_lines) else ""
        old_text = "".join(old_lines)
        deleted_text = old_text[len(head) : len(old_text) - len(tail)]
        middle = head + text + tail
        # If the new text begins with LF and the line before ends with CR, both form a single line
        # end. So that line is also built anew.
        if middle.startswith("\n") and first > 0 and self._lines[first - 1].endswith("\r"):
            first -= 1
            middle = self._lines[first] + middle
        old_lines, new_lines = self._lines[first : last + 1], split_lines(middle)
        self._lines[first : last + 1] = new_lines
        same = _count_common(deleted_text, text)
        lines = LineChange(first, tuple(old_lines), tuple(new_lines))
        return TextEdit(at + same, len(deleted_text) - same, text[same:], lines)

    def replace_all(self, text: str) -> TextEdit:
        """Replace the whole text."""
        before, old_lines = self.text, self._lines
        self._lines = split_lines(text)
        start = _count_common(before, text)
        end = _count_common(before[start:][::-1], text[start:][::-1])
        lines = _find_changed_lines(old_lines, self._lines)
        return TextEdit(start, len(before) - start - end, text[start : len(text) - end], lines)

    def _locate(self, position: Position) -> tuple[int, int]:
        """Return line and column in characters; the line may be the empty one after the last."""
        if position.line < 0:
            return 0, 0
        if position.line >= len(self._lines):
            return self._end_position()
        text = self._lines[position.line].rstrip("\r\n")
        return position.line, chars_from_utf16(text, max(position.units, 0))

    def _end_position(self) -> tuple[int, int]:
        if self._lines and not self._lines[-1].endswith(("\n", "\r")):
            return len(self._lines) - 1, len(self._lines[-1])
        return len(self._lines), 0


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their ends; `str.splitlines` also splits at form feeds."""
    return _LINE.findall(text)


def _find_changed_lines(before: Sequence[str], after: Sequence[str]) -> LineChange:
    start = _count_common(before, after)
    end = _count_common(before[start:][::-1], after[start:][::-1])
    old_lines = before[start : len(before) - end]
    return LineChange(start, tuple(old_lines), tuple(after[start : len(after) - end]))


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the common start of two texts, or of two lists of lines.

    The binary search compares slices, which is faster than a loop over single characters.
    """
    indexes = range(min(len(one), len(other)))
    # The first index at which the two differ is the length of their common start.
    return bisect_left(indexes, True, key=lambda index: one[: index + 1] != other[: index + 1])


def chars_from_utf16(text: str, units: int) -> int:
    """Return how many characters of the text fit into `units` UTF-16 code units.

    A character with two code units counts only if both fit.
    """
    if text.isascii() or not _WIDE.search(text, 0, units):
        return min(units, len(text))
    num_units = 0
    for index, character in enumerate(text):
        num_units += 2 if character > "\uffff" else 1
        if num_units > units:
            return index
    return len(text)


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units of `text`."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))

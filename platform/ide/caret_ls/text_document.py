"""The text of an open file, as lines, and positions in it as LSP counts them: UTF-16 code units.

Lines end with "\n", "\r\n" or "\r", each file as mixed as it likes; their ends belong to them. An
edit touches the lines that it changes and no others, so that a file of megabytes costs no more.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Beyond the basic plane: two code units each.
_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Position:
    """Both from 0; what lies outside means the nearest place inside, as LSP has it."""

    line: int
    units: int  # UTF-16 code units from the line's beginning


@dataclass(frozen=True, slots=True)
class TextEdit:
    """What a change did, in characters from the beginning of the file as it was before. Where an
    editor replaces a word by a longer one, or all of the text, it is what differs."""

    at: int
    deleted: int
    inserted: str


class TextDocument:
    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def to_offset(self, position: Position) -> int:
        """In characters."""
        line, column = self._locate(position)
        return sum(map(len, self._lines[:line])) + column

    def text_before(self, position: Position, *, max_chars: int) -> str:
        """What stands before it: all of it, or the last lines that fit."""
        line, column = self._locate(position)
        head = self._lines[line][:column] if line < len(self._lines) else ""
        kept = [head[-max_chars:]]
        room = max_chars - len(head)
        for each in reversed(self._lines[:line]):
            room -= len(each)
            if room < 0:
                break
            kept.append(each)
        return "".join(reversed(kept))

    def text_after(self, position: Position, *, max_chars: int) -> str:
        """What stands after it: all of it, or the first lines that fit."""
        line, column = self._locate(position)
        tail = self._lines[line][column:] if line < len(self._lines) else ""
        kept = [tail[:max_chars]]
        room = max_chars - len(tail)
        for each in self._lines[line + 1 :]:
            room -= len(each)
            if room < 0:
                break
            kept.append(each)
        return "".join(kept)

    def replace(self, start: Position, end: Position, text: str) -> TextEdit:
        """Takes `text` in where the range was."""
        (first, from_column), (last, to_column) = sorted((self._locate(start), self._locate(end)))
        at = sum(map(len, self._lines[:first])) + from_column
        touched = self._lines[first : last + 1]
        head = touched[0][:from_column] if touched else ""
        tail = touched[last - first][to_column:] if last - first < len(touched) else ""
        replaced = "".join(touched)
        deleted = replaced[len(head) : len(replaced) - len(tail)]
        middle = head + text + tail
        # A "\r" and a "\n" that have met are one line's end.
        if middle.startswith("\n") and first and self._lines[first - 1].endswith("\r"):
            first -= 1
            middle = self._lines[first] + middle
        self._lines[first : last + 1] = split_lines(middle)
        same = _num_same(deleted, text)
        return TextEdit(at + same, len(deleted) - same, text[same:])

    def replace_all(self, text: str) -> TextEdit:
        before, self._lines = self.text, split_lines(text)
        start = _num_same(before, text)
        end = _num_same(before[start:][::-1], text[start:][::-1])
        return TextEdit(start, len(before) - start - end, text[start : len(text) - end])

    def _locate(self, position: Position) -> tuple[int, int]:
        """Line and column in characters; the line may be the empty one behind the last."""
        if position.line < 0:
            return 0, 0
        if position.line >= len(self._lines):
            return self._end()
        text = self._lines[position.line].rstrip("\r\n")
        return position.line, chars_from_utf16(text, max(position.units, 0))

    def _end(self) -> tuple[int, int]:
        if self._lines and not self._lines[-1].endswith(("\n", "\r")):
            return len(self._lines) - 1, len(self._lines[-1])
        return len(self._lines), 0


def split_lines(text: str) -> list[str]:
    """With their ends. `str.splitlines` would break at form feeds and the like, too."""
    return _LINE.findall(text)


def _num_same(one: str, other: str) -> int:
    """With how many characters both begin."""
    most = range(min(len(one), len(other)))
    return bisect_left(most, True, key=lambda last: one[: last + 1] != other[: last + 1])


def chars_from_utf16(text: str, units: int) -> int:
    """As many characters as `units` code units; in the middle of a pair: before it."""
    if text.isascii() or not _WIDE.search(text, 0, units):
        return min(units, len(text))
    seen = 0
    for index, character in enumerate(text):
        seen += 2 if character > "\uffff" else 1
        if seen > units:
            return index
    return len(text)


def utf16_length(text: str) -> int:
    """UTF-16 code units of `text`."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))

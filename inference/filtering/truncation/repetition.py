"""Finds text that repeats itself, and text that repeats the text after the cursor. Pure."""

import math
from typing import Final

_UNIT_CHARS: Final = range(3, 33)  # possible lengths of the repeated text
_MIN_REPETITIONS: Final = 5
_MIN_CHARS: Final = 40  # of all repetitions: `None, None, None, None, None` is ordinary code
_MAX_LINES: Final = 4  # of a repeated sequence of lines


def is_repeating(line: str) -> bool:
    """Return whether the line ends with repetitions of a text that contains letters."""
    return len(line) >= _MIN_CHARS and any(
        _ends_with_repetitions(line, size) for size in _UNIT_CHARS
    )


def _ends_with_repetitions(line: str, size: int) -> bool:
    unit = line[-size:]
    if line[-2 * size : -size] != unit or not any(map(str.isalpha, unit)):
        return False
    num_repetitions = max(_MIN_REPETITIONS, math.ceil(_MIN_CHARS / size))
    return line.endswith(unit * num_repetitions)


class RecentLines:
    """The latest lines of a completion, with their indentation and without blank ones.

    The indentation distinguishes the closing lines of nested blocks, which are equal otherwise.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []  # at most twice as many as _MAX_LINES
        # Lines that would start the third occurrence of a sequence.
        self._repetition_starts: frozenset[str] = frozenset()

    def add(self, line: str) -> None:
        self._lines = [*self._lines[1 - 2 * _MAX_LINES :], line]
        self._repetition_starts = frozenset(
            self._lines[-size]
            for size in range(1, _MAX_LINES + 1)
            if len(self._lines) >= 2 * size
            and self._lines[-size:] == self._lines[-2 * size : -size]
        )

    def is_repetition(self, line: str) -> bool:
        """Return whether the line would start the third occurrence of a sequence of lines."""
        return line in self._repetition_starts

    def can_become_repetition(self, beginning: str) -> bool:
        """Return whether a line with this beginning may become a repetition."""
        return any(line.startswith(beginning) for line in self._repetition_starts)


class SuffixOverlap:
    """Finds the longest beginning of `text` with which a growing text ends (Knuth-Morris-Pratt)."""

    def __init__(self, text: str) -> None:
        self._text = text
        # For each beginning of the text, the length of its longest end that is also a beginning.
        # Computed on demand: the text may be half a megabyte, while the growing text is a line.
        self._shorter_lengths: list[int] = [0]
        self._length = 0  # of the longest beginning with which the growing text ends
        self.length_before_blank = 0  # _length without trailing white space of the growing text

    def feed(self, part: str) -> None:
        if not self._text:
            return
        for letter in part:
            self._length = self._extend_overlap(self._length, letter)
            if not letter.isspace():
                self.length_before_blank = self._length

    def restart(self) -> None:
        """Start with a new growing text."""
        self._length = self.length_before_blank = 0

    def _extend_overlap(self, length: int, letter: str) -> int:
        while length == len(self._text) or self._text[length] != letter:
            if not length:
                return 0
            length = self._find_shorter(length)
        return length + 1

    def _find_shorter(self, length: int) -> int:
        """Return the length of the next shorter beginning with which this beginning ends."""
        while len(self._shorter_lengths) < length:
            position = len(self._shorter_lengths)
            self._shorter_lengths.append(
                self._extend_overlap(self._shorter_lengths[-1], self._text[position])
            )
        return self._shorter_lengths[length - 1]

"""Detects repetitive output of a model: within a line, or over up to four lines."""

from typing import Final

# A line is checked each time it has grown by this many characters, to keep the cost low.
CHECK_EVERY: Final = 16
_UNIT_CHARS: Final = range(3, 33)
_MIN_ROUNDS: Final = 5
_MIN_CHARS: Final = 40  # of all repetitions: `None, None, None, None, None` is ordinary code
_MAX_LINES: Final = 4


def is_repeating(line: str) -> bool:
    """Return whether the line ends with repetitions of a text that contains letters."""
    return len(line) >= _MIN_CHARS and any(_ends_with_rounds(line, size) for size in _UNIT_CHARS)


def _ends_with_rounds(line: str, size: int) -> bool:
    unit = line[-size:]
    if line[-2 * size : -size] != unit or not any(map(str.isalpha, unit)):
        return False
    num_rounds = max(_MIN_ROUNDS, -(-_MIN_CHARS // size))
    return line.endswith(unit * num_rounds)


class RecentLines:
    """The latest lines of a completion, without blank ones."""

    def __init__(self) -> None:
        self._last: list[str] = []  # stripped; twice the longest repeated sequence
        self._worn: frozenset[str] = frozenset()  # lines that would start a third repetition

    def add(self, line: str) -> None:
        self._last = [*self._last[1 - 2 * _MAX_LINES :], line]
        self._worn = frozenset(
            self._last[-size]
            for size in range(1, _MAX_LINES + 1)
            if len(self._last) >= 2 * size and self._last[-size:] == self._last[-2 * size : -size]
        )

    def is_repetition(self, line: str) -> bool:
        return line in self._worn

    def can_become_repetition(self, beginning: str) -> bool:
        return any(line.startswith(beginning) for line in self._worn)

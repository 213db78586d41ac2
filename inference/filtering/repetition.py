"""A model that goes round in circles: within a line, or over up to four lines."""

from typing import Final

# A line is looked at each time it has so many characters more, so that it costs next to nothing.
CHECK_EVERY: Final = 16
_UNIT_CHARS: Final = range(3, 33)
_MIN_ROUNDS: Final = 5
_MIN_CHARS: Final = 40  # of all rounds: `None, None, None, None, None` is ordinary code
_MAX_LINES: Final = 4


def is_repeating(line: str) -> bool:
    """Whether the line ends with the same text, words among it, over and over again."""
    return len(line) >= _MIN_CHARS and any(_ends_with_rounds(line, size) for size in _UNIT_CHARS)


def _ends_with_rounds(line: str, size: int) -> bool:
    unit = line[-size:]
    if line[-2 * size : -size] != unit or not any(map(str.isalpha, unit)):
        return False
    num_rounds = max(_MIN_ROUNDS, -(-_MIN_CHARS // size))
    return line.endswith(unit * num_rounds)


class RecentLines:
    """The lines so far, without blank ones."""

    def __init__(self) -> None:
        self._last: list[str] = []  # stripped; twice the longest circle
        self._worn: frozenset[str] = frozenset()  # lines that would begin a third round

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

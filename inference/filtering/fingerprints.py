"""Hashes of windows of normalised text, by which copied code is known again.

Normalised is text without white space: nothing else, so that what counts as the same code can be
said in one sentence. A window has 150 of its characters (what GitHub says of its own filter: "about
150 characters"). The hash is that of Karp and Rabin (1987), modulo the prime 2^61 - 1, so that the
window moves on by a character in constant time.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

WINDOW_CHARS: Final = 150
# Of so many windows in a row an index keeps one (Schleimer, Wilkerson and Aiken 2003, "winnowing"):
# whatever has 165 characters in common with it is found for certain, nothing that has under 150.
WINNOW: Final = 16
_PRIME: Final = (1 << 61) - 1
_BASE: Final = 1_000_003
_OLDEST: Final = pow(_BASE, WINDOW_CHARS, _PRIME)


def normalise(text: str) -> str:
    return "".join(text.split())


class RollingHash:
    """The hash of the last WINDOW_CHARS characters of a text that grows."""

    def __init__(self) -> None:
        self._codes: deque[int] = deque(maxlen=WINDOW_CHARS)
        self._hash = 0

    def add(self, character: str) -> int | None:
        """None: not yet a whole window."""
        is_full = len(self._codes) == WINDOW_CHARS
        oldest = self._codes[0] if is_full else 0
        code = ord(character) + 1
        self._codes.append(code)
        self._hash = (self._hash * _BASE + code - oldest * _OLDEST) % _PRIME
        return self._hash if len(self._codes) == WINDOW_CHARS else None


def window_hashes(normalised: str) -> Iterator[int]:
    rolling = RollingHash()
    for character in normalised:
        if (hashed := rolling.add(character)) is not None:
            yield hashed


def winnow(hashes: Iterable[int]) -> Iterator[int]:
    """The smallest of each WINNOW in a row, once for as long as it is the smallest; of fewer, the
    smallest."""
    waiting: deque[tuple[int, int]] = deque()  # (place, hash), hashes ascending
    chosen = place = -1
    for place, hashed in enumerate(hashes):
        while waiting and waiting[-1][1] >= hashed:
            waiting.pop()
        waiting.append((place, hashed))
        if waiting[0][0] <= place - WINNOW:
            waiting.popleft()
        if place >= WINNOW - 1 and waiting[0][0] != chosen:
            chosen = waiting[0][0]
            yield waiting[0][1]
    if 0 <= place < WINNOW - 1:
        yield waiting[0][1]

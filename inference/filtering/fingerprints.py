"""Hashes of windows of a text, which identify copied code.

White space is removed from the text first. Nothing else is changed, so the definition of equal code
is simple. A window has 150 characters; GitHub's filter compares "about 150 characters". The hash is
that of Karp and Rabin (1987), modulo the prime 2^61 - 1. The hash of the next window is computed in
constant time.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

WINDOW_CHARS: Final = 150
# An index keeps one hash of this many consecutive windows (Schleimer, Wilkerson and Aiken 2003,
# "winnowing"). So every copy of at least 165 characters (150 + 16 - 1) is found, and none of fewer
# than 150.
WINNOW_HASHES: Final = 16
_PRIME: Final = (1 << 61) - 1
_BASE: Final = 1_000_003
# The factor of the character that leaves the window.
_OLDEST_FACTOR: Final = pow(_BASE, WINDOW_CHARS, _PRIME)


def remove_white_space(text: str) -> str:
    return "".join(text.split())


class RollingHash:
    """The hash of the last WINDOW_CHARS characters of a growing text."""

    def __init__(self) -> None:
        self._codes: deque[int] = deque(maxlen=WINDOW_CHARS)
        self._hash = 0

    def add(self, character: str) -> int | None:
        """Add a character. Return the window's hash; None: there are too few characters so far."""
        is_full = len(self._codes) == WINDOW_CHARS
        oldest = self._codes[0] if is_full else 0
        code = ord(character) + 1  # at least 1: 0 stands for no character
        self._codes.append(code)
        self._hash = (self._hash * _BASE + code - oldest * _OLDEST_FACTOR) % _PRIME
        return self._hash if len(self._codes) == WINDOW_CHARS else None


def window_hashes(text: str) -> Iterator[int]:
    """Yield the hash of each window of a text without white space."""
    rolling = RollingHash()
    for character in text:
        if (hash_ := rolling.add(character)) is not None:
            yield hash_


def winnow(hashes: Iterable[int]) -> Iterator[int]:
    """Yield the smallest of each WINNOW_HASHES consecutive hashes, each position only once.

    If there are fewer hashes than WINNOW_HASHES, yield the smallest.
    """
    window: deque[tuple[int, int]] = deque()  # (index, hash), hashes ascending
    yielded_index = index = -1
    for index, hash_ in enumerate(hashes):
        # A hash that is not smaller than a later one is never the smallest again.
        while window and window[-1][1] >= hash_:
            window.pop()
        window.append((index, hash_))
        if window[0][0] <= index - WINNOW_HASHES:
            window.popleft()
        if index >= WINNOW_HASHES - 1 and window[0][0] != yielded_index:
            yielded_index = window[0][0]
            yield window[0][1]
    if 0 <= index < WINNOW_HASHES - 1:
        yield window[0][1]

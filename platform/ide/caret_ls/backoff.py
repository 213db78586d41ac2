"""Delays between attempts to connect. Pure: randomness is passed in."""

from collections.abc import Callable
from typing import Final

FIRST_S: Final = 0.5
MAX_S: Final = 60.0


class Backoff:
    """Exponential backoff up to a minute, with jitter: each delay is shortened by up to a half.

    The jitter prevents all editors from reconnecting at once. `chance` returns random numbers from
    0 to 1.
    """

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._full_delay_s = FIRST_S  # the next delay, before the jitter shortens it

    def next_delay_s(self) -> float:
        full_delay_s = self._full_delay_s
        self._full_delay_s = min(2 * full_delay_s, MAX_S)
        return full_delay_s * (0.5 + self._chance() / 2)

    def reset(self) -> None:
        """Begin with the shortest delay again."""
        self._full_delay_s = FIRST_S

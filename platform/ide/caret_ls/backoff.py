"""Delays between attempts to connect. Pure: randomness is passed in."""

from collections.abc import Callable
from typing import Final

FIRST_S: Final = 0.5
MAX_S: Final = 60.0


class Backoff:
    """Exponential backoff up to a minute, with jitter for half of each delay.

    The jitter prevents a thousand editors from reconnecting at once. `chance` returns numbers from
    0 to 1.
    """

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._full_delay_s = FIRST_S  # of the next delay; the jitter shortens it

    def next_delay_s(self) -> float:
        full_delay_s = self._full_delay_s
        self._full_delay_s = min(2 * full_delay_s, MAX_S)
        return full_delay_s * (0.5 + self._chance() / 2)

    def reset(self) -> None:
        self._full_delay_s = FIRST_S

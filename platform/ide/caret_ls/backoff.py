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
        self._whole_s = FIRST_S

    def next_delay_s(self) -> float:
        whole_s = self._whole_s
        self._whole_s = min(2 * whole_s, MAX_S)
        return whole_s * (0.5 + self._chance() / 2)

    def reset(self) -> None:
        self._whole_s = FIRST_S

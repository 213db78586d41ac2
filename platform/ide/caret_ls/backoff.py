"""How long to wait before the next try to connect. Pure: chance comes in."""

from collections.abc import Callable
from typing import Final

FIRST_S: Final = 0.5
MAX_S: Final = 60.0


class Backoff:
    """Doubles up to a minute; half of each wait is left to chance, so that a thousand editors do
    not come back at once. `chance` gives numbers from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._whole_s = FIRST_S

    def next_delay_s(self) -> float:
        whole_s = self._whole_s
        self._whole_s = min(2 * whole_s, MAX_S)
        return whole_s * (0.5 + self._chance() / 2)

    def reset(self) -> None:
        self._whole_s = FIRST_S

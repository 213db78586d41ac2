"""Quantiles of the last seconds, exact to five percent, in a few kilobytes.

A histogram with a ring: each slot holds a second's counts by logarithmic width, and the sum of the
slots is kept beside them, so that adding costs the same however much there is.
"""

import math
from typing import Final

_GROWTH: Final = math.log(1.05)  # from one width to the next
_LEAST_MS: Final = 0.5
_NUM_WIDTHS: Final = 260  # up to 160 s
SLOT_S: Final = 1.0
NUM_SLOTS: Final = 10


class RollingQuantiles:
    """Of the last NUM_SLOTS seconds, the current one included."""

    def __init__(self) -> None:
        self._slots = [[0] * _NUM_WIDTHS for _ in range(NUM_SLOTS)]
        self._sum = [0] * _NUM_WIDTHS
        self._now = 0  # number of the current slot since the clock began
        self.count = 0

    def add(self, milliseconds: float, *, now_s: float) -> None:
        self._rotate_slots(now_s)
        place = int(math.log(max(milliseconds, _LEAST_MS) / _LEAST_MS) / _GROWTH)
        place = min(place, _NUM_WIDTHS - 1)
        self._slots[self._now % NUM_SLOTS][place] += 1
        self._sum[place] += 1
        self.count += 1

    def quantile(self, share: float, *, now_s: float) -> float | None:
        """In milliseconds, the upper end of its width; None: nothing was added lately."""
        self._rotate_slots(now_s)
        rank, seen = share * self.count, 0
        for place, count in enumerate(self._sum):
            seen += count
            if count and seen >= rank:
                return _LEAST_MS * math.exp(_GROWTH * (place + 1))
        return None

    def _rotate_slots(self, now_s: float) -> None:
        """Empties the slots that have become too old."""
        slot = int(now_s / SLOT_S)
        for number in range(max(self._now, slot - NUM_SLOTS) + 1, slot + 1):
            old = self._slots[number % NUM_SLOTS]
            if any(old):
                self._sum = [whole - gone for whole, gone in zip(self._sum, old, strict=True)]
                self.count -= sum(old)
                self._slots[number % NUM_SLOTS] = [0] * _NUM_WIDTHS
        self._now = max(self._now, slot)

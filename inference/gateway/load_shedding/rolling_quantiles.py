"""Quantiles of the latencies of the latest seconds. They are exact to 5%, and need 25 KB of memory.

The samples are counted in a ring of histograms with logarithmic bins, one histogram for each
second. The sum of all histograms is kept, too, so that `quantile` need not add them up.
"""

import math
from typing import Final

# Each bin ends 5% above the previous one: bin n ends at _MIN_MS * 1.05 ** (n + 1).
_GROWTH: Final = math.log(1.05)
_MIN_MS: Final = 0.5  # the lower bound of the first bin
_NUM_BINS: Final = 260  # up to 160 s
SLOT_S: Final = 1.0  # seconds that a histogram covers
NUM_SLOTS: Final = 10


class RollingQuantiles:
    """Quantiles of the last NUM_SLOTS seconds, including the current one."""

    def __init__(self) -> None:
        self._slots = [[0] * _NUM_BINS for _ in range(NUM_SLOTS)]
        self._sum = [0] * _NUM_BINS
        self._current_slot = 0  # number of the slot, counted from the clock's zero
        self.count = 0  # samples in all slots

    def add(self, milliseconds: float, *, now_s: float) -> None:
        self._rotate_slots(now_s)
        bin_index = int(math.log(max(milliseconds, _MIN_MS) / _MIN_MS) / _GROWTH)
        bin_index = min(bin_index, _NUM_BINS - 1)
        self._slots[self._current_slot % NUM_SLOTS][bin_index] += 1
        self._sum[bin_index] += 1
        self.count += 1

    def quantile(self, share: float, *, now_s: float) -> float | None:
        """Return the upper bound of the quantile's bin in milliseconds; None: no samples.

        `share` says which quantile: 0.99 for the p99.
        """
        self._rotate_slots(now_s)
        rank, num_counted = share * self.count, 0
        for bin_index, count in enumerate(self._sum):
            num_counted += count
            if count and num_counted >= rank:
                return _MIN_MS * math.exp(_GROWTH * (bin_index + 1))
        return None

    def _rotate_slots(self, now_s: float) -> None:
        """Empty the slots that are too old."""
        slot = int(now_s / SLOT_S)
        for number in range(max(self._current_slot, slot - NUM_SLOTS) + 1, slot + 1):
            old_slot = self._slots[number % NUM_SLOTS]
            if any(old_slot):
                self._sum = [
                    total - expired for total, expired in zip(self._sum, old_slot, strict=True)
                ]
                self.count -= sum(old_slot)
                self._slots[number % NUM_SLOTS] = [0] * _NUM_BINS
        self._current_slot = max(self._current_slot, slot)

"""The generic cell rate algorithm, for one bucket of one gateway.

A bucket holds one number, the theoretical arrival time: when it will be full again. Spending a unit
moves it on by the interval in which one unit comes back, and may not move it further ahead of now
than the whole capacity takes. Source: ATM Forum traffic management 4.0; Brandur Leach, "Rate
limiting, cells, and GCRA" (2015).
"""

from dataclasses import dataclass

# What floating point may lose of a unit.
_SLACK = 1e-6


@dataclass(slots=True)
class Gcra:
    full_at_s: float = 0.0  # monotonic seconds

    def available_units(self, *, capacity: int, interval_s: float, now_s: float) -> int:
        """Units that may be spent now."""
        ahead_s = max(0.0, self.full_at_s - now_s)
        return max(0, int(capacity - ahead_s / interval_s + _SLACK))

    def wait_s(self, units: int, *, capacity: int, interval_s: float, now_s: float) -> float:
        """Until so many units, at most the capacity, may be spent; 0: now."""
        allowed_at_s = max(self.full_at_s, now_s) + (units - capacity) * interval_s
        wait_s = allowed_at_s - now_s
        return wait_s if wait_s > _SLACK * interval_s else 0.0

    def spend(self, units: int, *, interval_s: float, now_s: float) -> None:
        """Below 0 gives back. Never refuses: what was allowed elsewhere counts here, too."""
        self.full_at_s = max(self.full_at_s, now_s) + units * interval_s

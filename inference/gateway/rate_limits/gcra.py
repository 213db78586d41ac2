"""The generic cell rate algorithm, for one bucket of one gateway.

A bucket holds one number, the theoretical arrival time: the time at which the bucket will be full
again. Spending a unit adds the interval in which one unit comes back. The arrival time may be ahead
of now by at most `capacity` such intervals. Sources: ATM Forum Traffic Management 4.0; Brandur
Leach, "Rate limiting, cells, and GCRA" (2015).
"""

from dataclasses import dataclass

# The part of a unit that floating-point arithmetic may lose.
_SLACK = 1e-6


@dataclass(slots=True)
class Gcra:
    full_at_s: float = 0.0  # monotonic seconds

    def available_units(self, *, capacity: int, interval_s: float, now_s: float) -> int:
        """Return the number of units that may be spent now."""
        ahead_s = max(0.0, self.full_at_s - now_s)
        return max(0, int(capacity - ahead_s / interval_s + _SLACK))

    def wait_s(self, units: int, *, capacity: int, interval_s: float, now_s: float) -> float:
        """Return the seconds until the units may be spent; 0 if they may be spent now.

        `units` must not exceed the capacity.
        """
        allowed_at_s = max(self.full_at_s, now_s) + (units - capacity) * interval_s
        wait_s = allowed_at_s - now_s
        return wait_s if wait_s > _SLACK * interval_s else 0.0

    def spend(self, units: int, *, interval_s: float, now_s: float) -> None:
        """Spend the units; negative units are given back. The capacity is not checked."""
        self.full_at_s = max(self.full_at_s, now_s) + units * interval_s

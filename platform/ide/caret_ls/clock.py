"""Wall clock and monotonic clock, so that tests can control time."""

import time
from typing import Protocol


class LoopClock(Protocol):
    def wall_s(self) -> float:
        """Return Unix time in seconds; may jump."""

    def monotonic_s(self) -> float:
        """Return seconds that only grow."""


class SystemLoopClock:
    def wall_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()

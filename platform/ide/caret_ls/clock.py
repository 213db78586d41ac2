"""The two clocks, as a test may turn them."""

import time
from typing import Protocol


class LoopClock(Protocol):
    def wall_s(self) -> float:
        """Unix time; may jump."""

    def monotonic_s(self) -> float:
        """Only grows."""


class SystemLoopClock:
    def wall_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()

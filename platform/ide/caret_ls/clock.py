"""The two clocks, as a test may turn them."""

import time
from typing import Protocol


class Clock(Protocol):
    def wall_s(self) -> float:
        """Unix time; may jump."""

    def monotonic_s(self) -> float:
        """Only grows."""


class SystemClock:
    def wall_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()

"""The clock of the language server, which tests replace to control time."""

import time
from typing import Protocol


class LoopClock(Protocol):
    def wall_s(self) -> float:
        """Return the Unix time in seconds. It jumps if somebody sets the computer's clock."""

    def monotonic_s(self) -> float:
        """Return the seconds since an arbitrary moment. They never decrease."""


class SystemLoopClock:
    def wall_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()

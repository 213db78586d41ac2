"""How late the event loop is: what a stall of it adds to everything that waits."""

import asyncio
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from caret.foundation.clock import Clock
from inference.recording.fast_counters import FastHistograms

PROBE_EVERY_S: Final = 0.1
_BOUNDS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class EventLoopLagProbe:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lag = FastHistograms(
            "caret_event_loop_lag_seconds",
            "How much later than asked for a sleeping task is woken.",
            bounds=_BOUNDS_S,
        )

    async def run(self) -> None:
        while True:
            began_s = self._clock.monotonic_s()
            await asyncio.sleep(PROBE_EVERY_S)
            late_s = self._clock.monotonic_s() - began_s - PROBE_EVERY_S
            self._lag.observe(max(0.0, late_s))

    def collect(self) -> Iterator[Metric]:
        yield self._lag.to_family()

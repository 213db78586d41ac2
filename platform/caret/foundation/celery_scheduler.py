"""Celery's scheduler for a machine whose wall clock may be set back.

Celery stores the wall-clock time at which each entry is due next. If the clock is set back by an
hour because a time server was wrong, nothing is due for an hour. Without any error, no usage would
be ingested and no snapshot published.
"""

from typing import Any, Final

import structlog
from celery.beat import Scheduler

from caret.foundation.clock import Clock, SystemClock

# Ordinary clock corrections are smaller, and are ignored.
_MIN_SET_BACK_S: Final = 1.0
log = structlog.get_logger(__name__)


class ClockJumpSafeScheduler(Scheduler):  # type: ignore[misc]  # celery has no types
    """A scheduler that restarts all intervals after the wall clock was set back."""

    clock: Clock = SystemClock()
    _clock_offset_s: float | None = None  # wall clock minus monotonic clock, at the last tick

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Run due entries and return the seconds until the next tick."""
        previous_s, offset_s = self._clock_offset_s, self._wall_s() - self.clock.monotonic_s()
        self._clock_offset_s = offset_s
        if previous_s is not None and offset_s < previous_s - _MIN_SET_BACK_S:
            log.warning("beat.clock_set_back", by_s=round(previous_s - offset_s))
            self._restart_intervals()
        wait_s: float = super().tick(*arguments, **options)
        return wait_s

    def _wall_s(self) -> float:
        return self.clock.now_ms() / 1000

    def _restart_intervals(self) -> None:
        for entry in self.schedule.values():
            entry.last_run_at = entry.default_now()
        self._heap = None  # rebuilt from the schedule at the next tick

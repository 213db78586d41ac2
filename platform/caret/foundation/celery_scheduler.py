"""Celery's scheduler for a machine whose wall clock may be set back.

Celery stores the wall-clock time at which each periodic task is due next. If the clock is set back
by an hour because a time server was wrong, nothing is due for an hour. No usage would be ingested
and no snapshot published in this hour, and no error would be logged.
"""

from typing import Any, Final

import structlog
from celery.beat import Scheduler

from caret.foundation.clock import Clock, SystemClock

_MIN_SET_BACK_S: Final = 1.0  # ordinary clock corrections are smaller, and are ignored
log = structlog.get_logger(__name__)


class ClockJumpSafeScheduler(Scheduler):  # type: ignore[misc]  # celery has no types
    """A scheduler that restarts the intervals of all tasks if the wall clock is set back."""

    clock: Clock = SystemClock()
    _clock_offset_s: float | None = None  # wall clock minus monotonic clock, at the last tick

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Send the tasks that are due, and return the seconds until the next tick."""
        previous_offset_s = self._clock_offset_s
        offset_s = self._wall_s() - self.clock.monotonic_s()
        self._clock_offset_s = offset_s
        if previous_offset_s is not None and offset_s < previous_offset_s - _MIN_SET_BACK_S:
            log.warning("beat.clock_set_back", by_s=round(previous_offset_s - offset_s))
            self._restart_intervals()
        wait_s: float = super().tick(*arguments, **options)
        return wait_s

    def _wall_s(self) -> float:
        return self.clock.now_ms() / 1000

    def _restart_intervals(self) -> None:
        for entry in self.schedule.values():
            entry.last_run_at = entry.default_now()
        self._heap = None  # Celery's `tick` then rebuilds it from the schedule

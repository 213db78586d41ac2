"""Celery's scheduler for a machine whose wall clock may be set back.

Celery's own remembers by the wall clock when each entry is due next. When that is set back by an
hour (a time server had been wrong), nothing is due for an hour: no usage would be ingested and no
snapshot published anew, in silence.
"""

from typing import Any, Final

import structlog
from celery.beat import Scheduler

from caret.foundation.clock import Clock, SystemClock

# Clocks that are only corrected are moved by less.
_SET_BACK_S: Final = 1.0
log = structlog.get_logger(__name__)


class ClockJumpSafeScheduler(Scheduler):  # type: ignore[misc]  # celery has no types
    """Begins all intervals anew when the wall clock was set back."""

    clock: Clock = SystemClock()
    _ahead_s: float | None = None  # the wall clock, of the other one, at the last tick

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Seconds until the next one."""
        before_s, self._ahead_s = self._ahead_s, self._wall_s() - self.clock.monotonic_s()
        if before_s is not None and self._ahead_s < before_s - _SET_BACK_S:
            log.warning("beat.clock_set_back", by_s=round(before_s - self._ahead_s))
            self._begin_anew()
        wait_s: float = super().tick(*arguments, **options)
        return wait_s

    def _wall_s(self) -> float:
        return self.clock.now_ms() / 1000

    def _begin_anew(self) -> None:
        for entry in self.schedule.values():
            entry.last_run_at = entry.default_now()
        self._heap = None  # made from these at the next tick

"""Beat's scheduler: safe from jumps of the clock, and at most one run of each task waits.

1. Celery stores the wall-clock time at which each periodic task is due next. If the clock is set
   back by an hour because a time server was wrong, nothing is due for an hour. No usage would be
   ingested and no snapshot published in this hour, and no error would be logged.
2. An overloaded worker takes one message of each queue in turn, the oldest first. If beat kept on
   sending runs of a task with a short interval, its queue would contain only old messages. Each
   would expire before the worker reaches it, and the task would never run.
"""

from typing import Any, Final

import redis
import structlog
from celery.beat import Scheduler

from caret.foundation.clock import Clock, SystemClock
from tenants.base.redis_connection import connect_to_redis

_MIN_SET_BACK_S: Final = 1.0  # ordinary clock corrections are smaller, and are ignored
_WAITING_KEY: Final = "caret:waiting-task:{task}"
# The mark expires this long before its message. Many intervals are as long as the expiry time of
# their messages. If the mark expired last, a run that is due at that time would be skipped.
_MARGIN_S: Final = 1.0
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


class OneWaitingRunScheduler(ClockJumpSafeScheduler):
    """A scheduler that skips a due task whose previous run still waits for a worker."""

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send the task of a schedule entry, whose message must expire."""
        if mark_waiting(entry.task, expires_s=entry.options["expires"]):
            super().apply_entry(entry, producer=producer)


def mark_waiting(task: str, *, expires_s: float) -> bool:
    """Note that a run of the task waits. Return False if one waits already.

    `expires_s`: the expiry time of the run's message, more than a second.
    """
    key = _WAITING_KEY.format(task=task)
    lifetime_ms = int((expires_s - _MARGIN_S) * 1000)
    try:
        return bool(connect_to_redis().set(key, "", nx=True, px=lifetime_ms))
    except redis.RedisError:
        return True  # without Redis, Celery cannot send the task, either; it logs the error


def mark_started(task: str) -> None:
    """Note that no run of the task waits any more. Raises redis.RedisError."""
    connect_to_redis().delete(_WAITING_KEY.format(task=task))

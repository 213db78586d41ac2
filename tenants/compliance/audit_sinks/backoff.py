"""Waits between attempts to deliver to a sink."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

MAX_WAIT: Final = timedelta(hours=1)
_FIRST_WAIT: Final = timedelta(seconds=5)
_SLOW: Final = timedelta(seconds=1)
_SLOW_EACH: Final = timedelta(milliseconds=50)  # per message
# The pause is this multiple of the time taken: a slow sink occupies a worker a quarter of the time.
_PAUSE_FACTOR: Final = 3


def compute_sink_backoff(num_failures: int) -> timedelta:
    """Return 5 s after the first failure, doubled with each further one, up to an hour."""
    doublings = min(num_failures - 1, 20)
    return min(_FIRST_WAIT * (1 << doublings), MAX_WAIT)


def compute_slow_sink_pause(took: timedelta, num_delivered: int) -> timedelta | None:
    """Return how long a slow sink must pause, to leave time for the others; None: it is not slow.

    A run is slow if it took longer than one second plus 50 ms for each delivered message.
    """
    is_slow = took > _SLOW + num_delivered * _SLOW_EACH
    return min(took * _PAUSE_FACTOR, MAX_WAIT) if is_slow else None


def make_due_condition(now: datetime) -> Q:
    """Return the filter of sinks that are due.

    If the clock is set back, no sink waits for longer than MAX_WAIT.
    """
    waits = Q(next_attempt_at__gt=now, next_attempt_at__lte=now + MAX_WAIT)
    is_claimed = Q(claimed_until__gt=now, claimed_until__lte=now + MAX_WAIT)
    return ~waits & ~is_claimed

"""Waits between deliveries to a sink."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

MAX_WAIT: Final = timedelta(hours=1)
_FIRST_WAIT: Final = timedelta(seconds=5)
# A run is slow if it takes longer than the sum of these.
_SLOW_RUN: Final = timedelta(seconds=1)
_SLOW_MESSAGE: Final = timedelta(milliseconds=50)  # for each delivered message
# A slow run is followed by a pause of three times its duration. So a slow sink occupies a worker
# for a quarter of the time.
_PAUSE_FACTOR: Final = 3


def compute_sink_backoff(num_failures: int) -> timedelta:
    """Return the wait: 5 s after the first failure, doubled with each further one, up to an hour.

    `num_failures` is at least 1.
    """
    # 10 doublings exceed MAX_WAIT. Without a limit, the product would overflow after many failures.
    doublings = min(num_failures - 1, 10)
    return min(_FIRST_WAIT * (1 << doublings), MAX_WAIT)


def compute_slow_sink_pause(took: timedelta, num_delivered: int) -> timedelta | None:
    """Return the pause of a slow sink, which leaves time for other sinks; None: it is not slow.

    `took` is the duration of a run that delivered `num_delivered` messages.
    """
    is_slow = took > _SLOW_RUN + num_delivered * _SLOW_MESSAGE
    return min(took * _PAUSE_FACTOR, MAX_WAIT) if is_slow else None


def make_due_condition(now: datetime) -> Q:
    """Return the filter of sinks that are due: neither waiting nor claimed.

    Times after now + MAX_WAIT are ignored: they were stored before the clock was set back.
    """
    waits = Q(next_attempt_at__gt=now, next_attempt_at__lte=now + MAX_WAIT)
    is_claimed = Q(claimed_until__gt=now, claimed_until__lte=now + MAX_WAIT)
    return ~waits & ~is_claimed

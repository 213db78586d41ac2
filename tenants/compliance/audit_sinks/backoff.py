"""When a sink is tried again."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

MAX_WAIT: Final = timedelta(hours=1)
_FIRST_WAIT: Final = timedelta(seconds=5)
_SLOW: Final = timedelta(seconds=1)
_SLOW_EACH: Final = timedelta(milliseconds=50)  # a message
_REST: Final = 3  # so a slow sink has a worker for a quarter of the time at most


def backoff_after(num_failures: int) -> timedelta:
    """5 s after the first failure, twice as long after each further one, an hour at most."""
    doublings = min(num_failures - 1, 20)
    return min(_FIRST_WAIT * (1 << doublings), MAX_WAIT)


def slow_sink_pause(took: timedelta, num_delivered: int) -> timedelta | None:
    """What a sink that takes its time has to wait, for the sake of the others; None: nothing. One
    that has got much in that time is not slow."""
    is_slow = took > _SLOW + num_delivered * _SLOW_EACH
    return min(took * _REST, MAX_WAIT) if is_slow else None


def is_due(now: datetime) -> Q:
    """Also when the clock was set back: nobody ever has to wait for longer than MAX_WAIT."""
    waits = Q(next_attempt_at__gt=now, next_attempt_at__lte=now + MAX_WAIT)
    is_claimed = Q(claimed_until__gt=now, claimed_until__lte=now + MAX_WAIT)
    return ~waits & ~is_claimed

"""Wall clock and monotonic clock behind the `Clock` port, so that tests can control time."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Return Unix time in milliseconds; may jump."""

    def monotonic_s(self) -> float:
        """Return seconds that only grow, for durations and deadlines."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_unix_ms(moment: datetime) -> int:
    """Return whole milliseconds, without the rounding of `timestamp()`'s float."""
    return (moment - _EPOCH) // _MILLISECOND


def from_unix_ms(value_ms: int) -> datetime:
    """Return the UTC datetime.

    Raises OverflowError beyond the year 9999.
    """
    return _EPOCH + value_ms * _MILLISECOND

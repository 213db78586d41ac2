"""Wall clock and monotonic clock behind the `Clock` port, so that tests can control time."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Return Unix time in milliseconds; it jumps when the clock is set."""

    def monotonic_s(self) -> float:
        """Return seconds since an arbitrary moment; they never decrease."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_unix_ms(moment: datetime) -> int:
    """Return whole Unix milliseconds, without the rounding error of `timestamp()`'s float."""
    return (moment - _EPOCH) // _MILLISECOND


def from_unix_ms(value_ms: int) -> datetime:
    """Return the UTC datetime for Unix milliseconds.

    Raises OverflowError outside of the years 1 to 9999.
    """
    return _EPOCH + value_ms * _MILLISECOND

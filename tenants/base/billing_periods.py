"""Days and months of bills: UTC, half-open, from the times of what is billed. Pure.

A clock that jumps is somebody's: a gateway's puts a wrong day on a record, which stays its day; in
which month it is booked is bounded by what is open and by the time of booking.
"""

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta

ONE_DAY = timedelta(days=1)


def month_of(day: date) -> date:
    """A month is named by its first day."""
    return day.replace(day=1)


def next_month(month: date) -> date:
    return month_of(month + timedelta(days=31))


def days_in(month: date) -> int:
    return monthrange(month.year, month.month)[1]


def begins_at(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def utc_day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def month_to_book(day: date, *, open_month: date, now: datetime) -> date:
    """The month in which something of `day` is booked: its own while that is open, else the first
    that is; never one that has not begun, unless all that have are closed."""
    latest = max(open_month, month_of(utc_day(now)))
    return min(max(month_of(day), open_month), latest)

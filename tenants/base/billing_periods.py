"""Days and months of bills: UTC, half-open, from the times of what is billed. Pure.

A gateway whose clock is wrong puts a wrong day on a record, and the record keeps that day. The
month in which it is booked stays bounded by the open month and the time of booking.
"""

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta

ONE_DAY = timedelta(days=1)


def start_of_month(day: date) -> date:
    """Return the first day of the month, which names it."""
    return day.replace(day=1)


def start_of_next_month(month: date) -> date:
    return start_of_month(month + timedelta(days=31))


def count_days_in_month(month: date) -> int:
    return monthrange(month.year, month.month)[1]


def start_of_day(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def utc_day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def choose_booking_month(day: date, *, open_month: date, now: datetime) -> date:
    """Return the month in which a record of `day` is booked.

    This is the month of `day`, or the first open month if that month is closed. It is never a month
    that has not begun, unless all months that have begun are closed.
    """
    latest = max(open_month, start_of_month(utc_day(now)))
    return min(max(start_of_month(day), open_month), latest)

"""Days and months of bills, half-open and in UTC. Pure.

The time of usage decides its day. A gateway whose clock is wrong therefore puts a wrong day on a
record, and the record keeps that day. choose_booking_month limits the effect on bills.
"""

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta

ONE_DAY = timedelta(days=1)


def start_of_month(day: date) -> date:
    """Return the first day of the month. A month is always represented by this day."""
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

    This is the month of `day`, or the month of `now` if that is earlier. It is never earlier than
    `open_month`, the first month without an invoice.
    """
    latest = max(open_month, start_of_month(utc_day(now)))
    return min(max(start_of_month(day), open_month), latest)

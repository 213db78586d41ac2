"""Days and months for billing, in UTC. Pure.

The time of usage decides its day. So a gateway with a wrong clock gives usage records a wrong day,
which is not corrected later. choose_booking_month limits the effect on bills.
"""

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta

ONE_DAY = timedelta(days=1)


def start_of_month(day: date) -> date:
    """Return the first day of the month. A month is always represented by this day."""
    return day.replace(day=1)


def start_of_next_month(month: date) -> date:
    # 31 days after the first day of any month is a day of the next month.
    return start_of_month(month + timedelta(days=31))


def count_days_in_month(month: date) -> int:
    return monthrange(month.year, month.month)[1]


def start_of_day(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def utc_day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def choose_booking_month(day: date, *, open_month: date, now: datetime) -> date:
    """Return the month in which a record of `day` is booked in the ledger.

    This is the month of `day`, but no month after `now`, and no month before `open_month`, which is
    the first month without an invoice. If `open_month` itself is after `now`, it is the result.
    """
    latest = max(open_month, start_of_month(utc_day(now)))
    return min(max(start_of_month(day), open_month), latest)

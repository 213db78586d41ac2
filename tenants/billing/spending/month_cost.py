"""The cost of the current month so far, and a forecast for the whole month. Pure.

For each day whose seats are not posted yet, the forecast uses the seats of the last posted day. For
the tokens of a day, it uses the average cost of up to FORECAST_DAYS past days, weekends included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from tenants.base.billing_periods import (
    ONE_DAY,
    count_days_in_month,
    start_of_month,
    start_of_next_month,
)
from tenants.base.money import Currency
from tenants.billing.pricing import price_seats
from tenants.billing.rating.seats import LINE as SEATS
from tenants.billing.spending.daily_cost import DailyCostLine

FORECAST_DAYS: Final = 28  # whole weeks: the average includes each weekday equally often
_MIN_DAYS: Final = 3  # with fewer whole days there is no forecast


@dataclass(frozen=True, slots=True)
class MonthCost:
    """The cost of the current month so far, before tax and before credit is subtracted."""

    month: date  # by its first day
    currency: Currency
    seats_micros: int
    tokens_micros: int
    forecast_micros: int | None  # of the whole month; None: fewer than _MIN_DAYS days

    @property
    def total_micros(self) -> int:
        return self.seats_micros + self.tokens_micros


def find_first_needed_day(today: date) -> date:
    """Return the first day that is needed to compute the month's cost and its forecast."""
    return min(start_of_month(today), today - FORECAST_DAYS * ONE_DAY)


def compute_month_cost(
    lines: Sequence[DailyCostLine], *, currency: Currency, today: date
) -> MonthCost:
    """Return the month's cost.

    `lines` are those of all days from `find_first_needed_day` (or earlier) up to today.
    """
    month = start_of_month(today)
    seats = [line for line in lines if line.line == SEATS]
    tokens = [line for line in lines if line.line != SEATS]
    cost = MonthCost(
        month=month,
        currency=currency,
        seats_micros=_sum_since(seats, month),
        tokens_micros=_sum_since(tokens, month),
        forecast_micros=None,
    )
    first = min((line.day for line in lines), default=today)
    num_days = min((today - first).days, FORECAST_DAYS)
    if num_days < _MIN_DAYS:
        return cost
    remaining = _forecast_seat_cost(seats, month) + _forecast_token_cost(tokens, today, num_days)
    return replace(cost, forecast_micros=cost.total_micros + remaining)


def _sum_since(lines: Sequence[DailyCostLine], first: date) -> int:
    return sum(line.amount_micros for line in lines if line.day >= first)


def _forecast_seat_cost(seats: Sequence[DailyCostLine], month: date) -> int:
    """Return the expected cost of the seats of days that are not posted yet."""
    last = max(seats, key=lambda line: line.day, default=None)
    if last is None:
        return 0
    day, total = max(month, last.day + ONE_DAY), 0
    while day < start_of_next_month(month):
        total += price_seats(last.quantity, day=day, month_micros=last.price_micros)
        day += ONE_DAY
    return total


def _forecast_token_cost(tokens: Sequence[DailyCostLine], today: date, num_days: int) -> int:
    """Return the expected cost of the rest of today and of the days after it."""
    first = today - num_days * ONE_DAY
    so_far_today = _sum_since(tokens, today)
    average = (_sum_since(tokens, first) - so_far_today) // num_days
    return max(0, average - so_far_today) + average * (count_days_in_month(today) - today.day)

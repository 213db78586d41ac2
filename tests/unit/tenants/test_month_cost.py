"""The cost of a month and its forecast."""

from datetime import date, timedelta

import pytest

from tenants.base.money import MICROS, Currency
from tenants.billing.pricing import price_seats
from tenants.billing.rating.seats import LINE as SEATS
from tenants.billing.spending.daily_cost import DailyCostLine
from tenants.billing.spending.month_cost import (
    MonthCost,
    compute_month_cost,
    find_first_needed_day,
)

TODAY = date(2026, 11, 10)
SEAT_MICROS = 30 * MICROS


def tokens(day: date, micros: int) -> DailyCostLine:
    """Return a line that costs `micros`. Its quantity and its price do not matter."""
    return DailyCostLine(day, "fast.generated", 1, MICROS, micros)


def seats(day: date, num: int) -> DailyCostLine:
    cost = price_seats(num, day=day, month_micros=SEAT_MICROS)
    return DailyCostLine(day, SEATS, num, SEAT_MICROS, cost)


def days_before(num: int) -> list[date]:
    return [TODAY - timedelta(days=num_days) for num_days in range(num, 0, -1)]


def compute(*lines: DailyCostLine) -> MonthCost:
    return compute_month_cost(lines, currency=Currency.EUR, today=TODAY)


def test_costs_before_the_month_do_not_count() -> None:
    cost = compute(tokens(date(2026, 10, 31), 900), tokens(date(2026, 11, 1), 70), seats(TODAY, 1))

    assert cost.tokens_micros == 70
    assert cost.seats_micros == MICROS  # a thirtieth of the monthly price
    assert cost.total_micros == MICROS + 70


def test_tokens_are_forecast_by_the_average_of_four_weeks() -> None:
    cost = compute(*(tokens(day, 100) for day in days_before(28)))

    # Nine days of November cost 900; today and the 20 days after it are expected to cost 100 each.
    assert cost.forecast_micros == 900 + 21 * 100


def test_a_day_that_already_cost_more_than_the_average_counts_as_it_is() -> None:
    cost = compute(*(tokens(day, 100) for day in days_before(28)), tokens(TODAY, 500))

    assert cost.forecast_micros == 900 + 500 + 20 * 100


def test_seats_are_forecast_by_the_last_posted_day() -> None:
    cost = compute(*(seats(day, 2) for day in days_before(9)))

    assert cost.forecast_micros == 2 * SEAT_MICROS


def test_a_forecast_needs_three_whole_days() -> None:
    assert compute(*(tokens(day, 100) for day in days_before(2))).forecast_micros is None
    assert compute(*(tokens(day, 100) for day in days_before(3))).forecast_micros is not None
    assert compute().forecast_micros is None


@pytest.mark.parametrize(
    ("today", "first"),
    [(date(2026, 11, 10), date(2026, 10, 13)), (date(2026, 10, 31), date(2026, 10, 1))],
)
def test_the_forecast_reads_four_weeks_and_the_whole_month(today: date, first: date) -> None:
    assert find_first_needed_day(today) == first

"""Prices are whole numbers of micros. The price of usage does not depend on how it is divided."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.policy import Tier
from caret.contracts.pricing import NOTHING, TierPrices, TokenCounts, billable_tokens, cost_micros
from tenants.base.billing_periods import (
    choose_booking_month,
    count_days_in_month,
    start_of_day,
    start_of_next_month,
    utc_day,
)
from tenants.base.money import divide_half_up, format_amount, format_price, to_cents
from tenants.billing.plans.price_book import PlanPrice, PriceBook, SubscriptionPrices
from tenants.billing.pricing import (
    TIER_LINES,
    parse_line,
    price_additional_tokens,
    price_seats,
    price_tokens,
)

TOKENS = st.integers(0, 10**9)
PRICES = st.integers(0, 10**9)
DAYS = st.dates(date(2020, 1, 1), date(2099, 12, 31))
NOVEMBER = date(2026, 11, 1)


@given(st.lists(TOKENS, max_size=30), PRICES)
def test_the_price_of_a_day_does_not_depend_on_its_batches(batches: list[int], price: int) -> None:
    total_price, num_earlier_tokens = 0, 0
    for num_tokens in batches:
        total_price += price_additional_tokens(num_tokens, after=num_earlier_tokens, price=price)
        num_earlier_tokens += num_tokens

    assert total_price == price_tokens(sum(batches), price)


@given(TOKENS, TOKENS, PRICES)
def test_more_tokens_never_cost_less(num_tokens: int, after: int, price: int) -> None:
    assert price_additional_tokens(num_tokens, after=after, price=price) >= 0


@given(TOKENS, PRICES)
def test_a_rounded_price_is_off_by_half_a_micro_at_most(num_tokens: int, price: int) -> None:
    assert abs(price_tokens(num_tokens, price) * 1_000_000 - num_tokens * price) <= 500_000


def test_half_a_micro_is_rounded_up() -> None:
    assert [price_tokens(1, price) for price in (499_999, 500_000, 1_500_000)] == [0, 1, 2]


@given(DAYS, st.integers(0, 10**9), st.integers(0, 1000))
def test_a_full_month_of_seats_costs_exactly_its_price(
    month: date, price: int, num_seats: int
) -> None:
    days = [month.replace(day=number + 1) for number in range(count_days_in_month(month))]

    total = sum(price_seats(num_seats, day=day, month_micros=price) for day in days)

    assert total == num_seats * price


@given(DAYS, st.integers(0, 10**9))
def test_daily_prices_of_a_seat_differ_by_at_most_one_micro(day: date, price: int) -> None:
    cost = price_seats(1, day=day, month_micros=price)

    assert 0 <= cost - price // count_days_in_month(day) <= 1


@given(st.integers(-(10**15), 10**15))
def test_cents_are_rounded_to_the_nearest_and_halves_away_from_zero(micros: int) -> None:
    cents = to_cents(micros)

    assert abs(cents * 10_000 - micros) <= 5_000
    assert to_cents(-micros) == -cents


@pytest.mark.parametrize(
    ("dividend", "divisor", "nearest"), [(5, 2, 3), (-5, 2, -3), (4, 3, 1), (5, 3, 2), (0, 7, 0)]
)
def test_division_rounds_to_the_nearest(dividend: int, divisor: int, nearest: int) -> None:
    assert divide_half_up(dividend, divisor) == nearest


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0.00"), (1_234_500_000, "1,234.50"), (-50_000, "-0.05"), (-1_000_000, "-1.00")],
)
def test_an_amount_has_two_decimals(micros: int, text: str) -> None:
    assert format_amount(micros) == text


@pytest.mark.parametrize(("micros", "text"), [(150_000, "0.15"), (37_500, "0.0375"), (0, "0.00")])
def test_a_price_has_as_many_decimals_as_needed(micros: int, text: str) -> None:
    assert format_price(micros) == text


def test_a_request_without_generated_tokens_is_not_billed() -> None:
    assert billable_tokens(prompt=1_000, cached=None, generated=0) == NOTHING


@pytest.mark.parametrize(
    ("cached", "uncached"), [(None, 0), (0, 100), (40, 60), (100, 0), (999, 0)]
)
def test_cached_and_unknown_prompt_tokens_are_billed_as_cached(
    cached: int | None, uncached: int
) -> None:
    billed = billable_tokens(prompt=100, cached=cached, generated=1)

    assert billed.prompt == uncached
    assert billed.prompt + billed.cached_prompt == 100


@given(TOKENS, TOKENS, TOKENS, PRICES, PRICES, PRICES)
def test_a_budget_overestimates_a_request_by_less_than_one_micro(
    prompt: int,
    cached: int,
    generated: int,
    prompt_price: int,
    cached_price: int,
    generated_price: int,
) -> None:
    cost = cost_micros(
        TierPrices(prompt_price, cached_price, generated_price),
        TokenCounts(prompt, cached, generated),
    )

    exact = prompt * prompt_price + cached * cached_price + generated * generated_price
    assert exact <= cost * 1_000_000 < exact + 1_000_000


@given(DAYS, DAYS, st.integers(0, 4_000_000_000))
def test_usage_is_never_booked_in_a_closed_or_future_month(
    day: date, first_open: date, seconds: int
) -> None:
    first_open, now = first_open.replace(day=1), datetime.fromtimestamp(seconds, UTC)

    month = choose_booking_month(day, open_month=first_open, now=now)

    assert month.day == 1
    assert first_open <= month <= max(first_open, utc_day(now).replace(day=1))


def test_the_last_microsecond_of_a_month_belongs_to_it() -> None:
    last = start_of_day(start_of_next_month(NOVEMBER)) - timedelta(microseconds=1)

    assert utc_day(last) == date(2026, 11, 30)
    assert utc_day(start_of_day(start_of_next_month(NOVEMBER))) == date(2026, 12, 1)


def test_a_day_in_another_time_zone_is_booked_by_utc() -> None:
    berlin = timezone(timedelta(hours=1))

    assert utc_day(datetime(2026, 12, 1, 0, 59, tzinfo=berlin)) == date(2026, 11, 30)


def _price(effective_on: date, seat: int, **model_prices: int) -> PlanPrice:
    """Return prices in micros.

    `seat` is the price of a seat for a month, and of a million tokens of any kind. `model_prices`
    are prices of a million tokens, by model.
    """
    return PlanPrice(
        effective_on,
        seat,
        {tier: TierPrices(seat, seat, seat) for tier in Tier},
        {model: TierPrices(price, price, price) for model, price in model_prices.items()},
    )


@pytest.mark.parametrize("model", ["", "small", "Qwen/Qwen2.5-Coder-1.5B", ".", "a.b.c"])
@pytest.mark.parametrize("code", list(TIER_LINES))
def test_an_invoice_line_for_tokens_is_parsed_from_its_code(code: str, model: str) -> None:
    line = replace(TIER_LINES[code], model=model)

    assert parse_line(line.code) == line


@pytest.mark.parametrize("code", ["", "seats", "fast", "fast.", "fast.x", "x.prompt", "fast.x.y"])
def test_a_code_that_names_no_tokens_is_not_parsed(code: str) -> None:
    assert parse_line(code) is None


def test_a_day_has_the_most_recent_price() -> None:
    book = PriceBook(
        [
            SubscriptionPrices(
                NOVEMBER, "Team", (_price(date(2026, 1, 1), 1), _price(date(2026, 11, 10), 2))
            ),
            SubscriptionPrices(date(2026, 11, 20), "Company", (_price(date(2026, 1, 1), 3),)),
        ]
    )

    days = [date(2026, 10, 31), NOVEMBER, *(NOVEMBER.replace(day=d) for d in (9, 10, 19, 20))]
    prices = [book.price_on(day) for day in days]

    seat_prices = [None if price is None else price.seat_month_micros for price in prices]
    assert seat_prices == [None, 1, 1, 2, 2, 3]


def test_the_next_change_is_the_first_day_with_another_price() -> None:
    same = _price(date(2026, 1, 1), 1)
    book = PriceBook(
        [
            SubscriptionPrices(NOVEMBER, "Team", (same, _price(date(2026, 11, 10), 2))),
            # Its price changes on 15 November, but the plan is in force only from the 20th on.
            SubscriptionPrices(
                date(2026, 11, 20), "Company", (same, _price(date(2026, 11, 15), 3))
            ),
        ]
    )

    changes = [book.next_change_after(NOVEMBER.replace(day=day)) for day in (1, 10, 19, 20)]

    assert changes == [date(2026, 11, 10), date(2026, 11, 20), date(2026, 11, 20), None]


def test_gateways_get_the_current_and_future_prices() -> None:
    book = PriceBook(
        [
            SubscriptionPrices(
                NOVEMBER,
                "Team",
                (_price(date(2026, 1, 1), 1), _price(date(2026, 12, 1), 2, large=8)),
            )
        ]
    )

    periods = book.list_prices_from(date(2026, 11, 21))

    assert [prices.tiers[Tier.FAST].prompt for prices in periods] == [1, 2]
    assert [prices.model_prices for prices in periods] == [{}, {"large": TierPrices(8, 8, 8)}]
    assert periods[1].effective_from_ms == int(datetime(2026, 12, 1, tzinfo=UTC).timestamp() * 1000)

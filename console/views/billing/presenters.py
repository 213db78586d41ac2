"""Rows and charts of the billing pages: prices, usage and spending.

A ledger line is the code of a product that is priced on its own: `seats`, or the tokens of one
tier, kind and model, as TIER.KIND or TIER.KIND.MODEL. A line without a model has the tier's price.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import Tier
from caret.contracts.pricing import TierPrices
from console.charts.chart import Chart, Series, Time, Unit, build_bar_chart
from console.texts.money_format import format_amount
from tenants.base.billing_periods import ONE_DAY, start_of_month, start_of_next_month
from tenants.base.money import MICROS, Currency
from tenants.billing.plans.price_book import PlanPrice
from tenants.billing.pricing import PricedTokenKind, parse_line
from tenants.billing.rating.seats import LINE as SEATS
from tenants.billing.spending.daily_cost import DailyCostLine

_TIERS: Final[dict[Tier, Promise]] = {Tier.FAST: _("Fast tier"), Tier.QUALITY: _("Quality tier")}
_KINDS: Final[dict[PricedTokenKind, Promise]] = {
    PricedTokenKind.PROMPT: _("prompt tokens"),
    PricedTokenKind.CACHED_PROMPT: _("prompt tokens from the cache"),
    PricedTokenKind.GENERATED: _("generated tokens"),
}


@dataclass(frozen=True, slots=True)
class PriceRow:
    name: Promise | str  # of a tier or a model
    # Micros per million tokens.
    prompt: int
    cached_prompt: int
    generated: int


@dataclass(frozen=True, slots=True)
class SpendRow:
    """Spending of a day or a month."""

    begins_on: date
    seats_micros: int
    fast_micros: int
    quality_micros: int

    @property
    def micros(self) -> int:
        return self.seats_micros + self.fast_micros + self.quality_micros


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Usage and cost of one ledger line in a month."""

    line: str
    name: str
    quantity: int  # tokens, or days of seats
    is_seats: bool
    amount_micros: int


def build_price_rows(price: PlanPrice) -> list[PriceRow]:
    """Return the prices of the tiers, then those of models that have prices of their own."""
    named_prices: list[tuple[Promise | str, TierPrices]] = [
        (name, price.tiers[tier]) for tier, name in _TIERS.items() if tier in price.tiers
    ]
    named_prices += sorted(price.model_prices.items())
    return [
        PriceRow(name, prices.prompt, prices.cached_prompt, prices.generated)
        for name, prices in named_prices
    ]


def name_of(line: str) -> str:
    """Return the name of a ledger line; an unknown line unchanged."""
    token_line = parse_line(line)
    if token_line is None:
        return str(_("Seats")) if line == SEATS else line
    parts = (_TIERS[token_line.tier], token_line.model, _KINDS[token_line.kind])
    return ", ".join(str(part) for part in parts if part)  # the model may be ""


def build_usage_rows(daily_lines: Iterable[DailyCostLine], month: date) -> list[UsageRow]:
    """Return the rows of a month: seats first, then tokens by tier, model and kind."""
    quantities: defaultdict[str, int] = defaultdict(int)
    amounts: defaultdict[str, int] = defaultdict(int)
    for daily_line in daily_lines:
        if start_of_month(daily_line.day) == month:
            quantities[daily_line.line] += daily_line.quantity
            amounts[daily_line.line] += daily_line.amount_micros
    return [
        UsageRow(line, name_of(line), quantities[line], line == SEATS, amounts[line])
        for line in sorted(amounts, key=_sort_key)
    ]


def _sort_key(line: str) -> tuple[Any, ...]:
    """Return the position of the line of a DailyCostLine. These are only seats and tokens.

    () puts seats first.
    """
    token_line = parse_line(line)
    return () if token_line is None else token_line.sort_key


def sum_by_day(daily_lines: Iterable[DailyCostLine], first: date, last: date) -> list[SpendRow]:
    """Return a row for each day from `first` to `last`, also for days without spending."""
    sums = _sum_amounts((daily_line.day, daily_line) for daily_line in daily_lines)
    num_days = (last - first).days + 1
    return [_to_spend_row(first + number * ONE_DAY, sums) for number in range(num_days)]


def sum_by_month(daily_lines: Iterable[DailyCostLine], first: date, last: date) -> list[SpendRow]:
    """Return a row for each month from that of `first` to that of `last`."""
    sums = _sum_amounts((start_of_month(daily_line.day), daily_line) for daily_line in daily_lines)
    months = [start_of_month(first)]
    while months[-1] < start_of_month(last):
        months.append(start_of_next_month(months[-1]))
    return [_to_spend_row(month, sums) for month in months]


# Micros by the first day of the row, and by the ledger line up to its first dot: a tier, or SEATS.
_Sums = dict[tuple[date, str], int]


def _sum_amounts(dated_lines: Iterable[tuple[date, DailyCostLine]]) -> _Sums:
    sums: defaultdict[tuple[date, str], int] = defaultdict(int)
    for begins_on, daily_line in dated_lines:
        sums[begins_on, daily_line.line.partition(".")[0]] += daily_line.amount_micros
    return sums


def _to_spend_row(begins_on: date, sums: _Sums) -> SpendRow:
    return SpendRow(
        begins_on=begins_on,
        seats_micros=sums.get((begins_on, SEATS), 0),
        fast_micros=sums.get((begins_on, Tier.FAST.value), 0),
        quality_micros=sums.get((begins_on, Tier.QUALITY.value), 0),
    )


def build_spending_chart(
    rows: Sequence[SpendRow], currency: Currency, *, is_by_month: bool
) -> Chart:
    format_name = "YEAR_MONTH_FORMAT" if is_by_month else "MONTH_DAY_FORMAT"
    series = [
        Series(gettext("Seats"), [row.seats_micros / MICROS for row in rows]),
        Series(gettext("Fast tier"), [row.fast_micros / MICROS for row in rows]),
        Series(gettext("Quality tier"), [row.quality_micros / MICROS for row in rows]),
    ]
    times = [Time(date_format(row.begins_on, format_name)) for row in rows]
    return build_bar_chart(gettext("Spending over time"), times, series, _unit_of(currency))


def _unit_of(currency: Currency) -> Unit:
    def format_units(amount: float) -> str:
        return format_amount(round(amount * MICROS), currency)

    return Unit(currency.value, short=format_units, exact=format_units)

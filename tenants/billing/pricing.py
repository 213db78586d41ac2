"""Prices of tokens and seats, in integer arithmetic. Pure.

Tokens of a day, a tier and a kind cost `tokens x price / 1,000,000`, rounded half up once for the
whole day. Each posting costs the difference that it makes to the day's running total, so the day's
sum does not depend on how its records fell into batches.

A seat's monthly price is divided among its days so that they add up to it exactly: the first d days
of N cost `price x d / N`, rounded down.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from caret.contracts.policy import Tier
from caret.contracts.pricing import PRICED_TOKENS, TierPrices, TokenCounts
from tenants.base.billing_periods import count_days_in_month
from tenants.base.money import divide_half_up


class PricedTokenKind(StrEnum):
    PROMPT = "prompt"
    CACHED_PROMPT = "cached_prompt"
    GENERATED = "generated"


@dataclass(frozen=True, slots=True)
class TokenLine:
    """A tier and token kind that is counted and priced separately; written `fast.prompt`."""

    tier: Tier
    kind: PricedTokenKind

    @property
    def code(self) -> str:
        return f"{self.tier.value}.{self.kind.value}"


LINES = {line.code: line for line in (TokenLine(t, k) for t in Tier for k in PricedTokenKind)}


def get_token_count(line: TokenLine, tokens: Mapping[Tier, TokenCounts]) -> int:
    counts = tokens.get(line.tier)
    return 0 if counts is None else int(getattr(counts, line.kind.value))


def get_unit_price(line: TokenLine, prices: Mapping[Tier, TierPrices]) -> int:
    """Return the price of a million tokens in micros."""
    return int(getattr(prices[line.tier], line.kind.value))


def price_tokens(num_tokens: int, price: int) -> int:
    return divide_half_up(num_tokens * price, PRICED_TOKENS)


def price_additional_tokens(num_tokens: int, *, after: int, price: int) -> int:
    """Return the price in micros of `num_tokens` on top of `after` of the same day and line."""
    return price_tokens(after + num_tokens, price) - price_tokens(after, price)


def price_seats(num_seats: int, *, day: date, month_micros: int) -> int:
    """Return the price of one day in micros."""
    num_days = count_days_in_month(day)
    until = month_micros * day.day // num_days
    before = month_micros * (day.day - 1) // num_days
    return num_seats * (until - before)

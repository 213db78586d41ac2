"""Prices of tokens and seats, in integer arithmetic. Pure.

A line is a tier and a kind of tokens. A model with prices of its own has separate lines. The tokens
of a line on one day cost `tokens x price / 1,000,000` micros, rounded half up once for the whole
day. The amount of a posting is the day's rounded total after the posting, minus the one before. The
day's sum therefore does not depend on how its usage records were divided into batches.

A seat's monthly price is divided among the days of the month. The first d days of a month with N
days cost `price x d / N`, rounded down, so the prices of all days add up to the monthly price.
"""

from dataclasses import dataclass, replace
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
    """A line of tokens, which are counted and priced separately from those of other lines.

    Its code is `fast.prompt`, or `fast.prompt.MODEL` for a model with prices of its own.
    """

    tier: Tier
    kind: PricedTokenKind
    model: str = ""  # "": all models with the tier's price

    @property
    def code(self) -> str:
        code = f"{self.tier.value}.{self.kind.value}"
        return f"{code}.{self.model}" if self.model else code

    @property
    def sort_key(self) -> tuple[int, str, int]:
        """Sort by tier, then by model (lines with the tier's price first), then by kind."""
        return (_TIER_ORDER[self.tier], self.model, _KIND_ORDER[self.kind])


_TIER_ORDER = {tier: index for index, tier in enumerate(Tier)}
_KIND_ORDER = {kind: index for index, kind in enumerate(PricedTokenKind)}
# The lines of models that have their tier's prices, by code.
TIER_LINES = {line.code: line for line in (TokenLine(t, k) for t in Tier for k in PricedTokenKind)}


def parse_line(code: str) -> TokenLine | None:
    """Return the line with this code; None: the code is not one of tokens, such as `seats`."""
    tier, _, rest = code.partition(".")
    kind, _, model = rest.partition(".")
    line = TIER_LINES.get(f"{tier}.{kind}")
    return None if line is None else replace(line, model=model)


def get_token_count(kind: PricedTokenKind, tokens: TokenCounts) -> int:
    return int(getattr(tokens, kind.value))


def get_unit_price(kind: PricedTokenKind, prices: TierPrices) -> int:
    """Return the price of a million tokens in micros."""
    return int(getattr(prices, kind.value))


def price_tokens(num_tokens: int, price: int) -> int:
    """Return the price of `num_tokens` in micros. `price` is for a million tokens, in micros."""
    return divide_half_up(num_tokens * price, PRICED_TOKENS)


def price_additional_tokens(num_tokens: int, *, after: int, price: int) -> int:
    """Return the price in micros of `num_tokens` that follow `after` tokens of the day and line.

    `price` is the price of a million tokens in micros.
    """
    return price_tokens(after + num_tokens, price) - price_tokens(after, price)


def price_seats(num_seats: int, *, day: date, month_micros: int) -> int:
    """Return the price of one day in micros. `month_micros` is a seat's price for a month."""
    num_days = count_days_in_month(day)
    until = month_micros * day.day // num_days
    before = month_micros * (day.day - 1) // num_days
    return num_seats * (until - before)

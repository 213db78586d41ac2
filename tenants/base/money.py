"""Money in whole micros, and the supported currencies. Pure."""

from enum import StrEnum
from typing import Final

MICROS: Final = 1_000_000  # in a unit of a currency, such as a euro
MICROS_PER_CENT: Final = 10_000
MAX_MICROS: Final = 10**15  # a billion units: far below the maximum of a Postgres bigint


class Currency(StrEnum):
    """A supported currency. All of them have cents."""

    EUR = "EUR"
    USD = "USD"
    GBP = "GBP"
    CHF = "CHF"


def divide_half_up(dividend: int, divisor: int) -> int:
    """Divide and round to the nearest integer, halves away from zero. `divisor` is positive."""
    quotient = (2 * abs(dividend) + divisor) // (2 * divisor)
    return quotient if dividend >= 0 else -quotient


def to_cents(micros: int) -> int:
    """Round micros to cents, halves away from zero."""
    return divide_half_up(micros, MICROS_PER_CENT)


def format_amount(micros: int) -> str:
    """Format an amount with two decimals, rounded to cents: -1,234.50."""
    cents = to_cents(micros)
    units, fraction = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{units:,}.{fraction:02}"


def format_price(micros: int) -> str:
    """Format a price with all its decimals, at least two: 0.15, 0.0375. Not for negative prices."""
    units, fraction = divmod(micros, MICROS)
    decimals = f"{fraction:06}".rstrip("0").ljust(2, "0")
    return f"{units:,}.{decimals}"

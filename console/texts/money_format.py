"""Amounts of money in the format of the page's language.

They are computed from integer micros (millionths of the currency unit), never from floats.
"""

from decimal import Decimal
from typing import Final

from django.utils.formats import number_format
from django.utils.translation import pgettext

from tenants.base.money import MICROS, Currency, to_cents

_SYMBOLS: Final = {
    Currency.EUR: "€",
    Currency.USD: "$",
    Currency.GBP: "£",
    Currency.CHF: "CHF\N{NO-BREAK SPACE}",
}
_CENT_DECIMALS: Final = 2
_TINY_MICROS: Final = MICROS // 10  # 0.10 of the currency unit; smaller budgets are tiny


def format_amount(micros: int, currency: str) -> str:
    """Return the amount in whole cents, for example €1,234.50. Half cents round away from zero."""
    return _format_decimal(Decimal(to_cents(micros)) / 100, currency, _CENT_DECIMALS)


def format_budget_amount(micros: int, limit_micros: int, currency: str) -> str:
    """Return the limit of a budget, or an amount of it that was spent or remains.

    If the limit is tiny, the amount includes fractions of cents: €0.0053 of €0.01.
    """
    format_micros = format_exact_amount if limit_micros < _TINY_MICROS else format_amount
    return format_micros(micros, currency)


def format_exact_amount(micros: int, currency: str) -> str:
    """Return the amount with all its decimals, at least two, for example €0.0375."""
    value = Decimal(micros) / MICROS
    exponent = value.normalize().as_tuple().exponent
    assert isinstance(exponent, int), "the value is finite"
    return _format_decimal(value, currency, max(_CENT_DECIMALS, -exponent))


def _format_decimal(value: Decimal, currency: str, decimals: int) -> str:
    number = number_format(abs(value), decimal_pos=decimals, use_l10n=True, force_grouping=True)
    # Translators: in German "%(number)s %(symbol)s", with a no-break space.
    pattern = pgettext("an amount of money", "%(symbol)s%(number)s")
    text = pattern % {"symbol": _SYMBOLS[Currency(currency)], "number": number}
    return f"\N{MINUS SIGN}{text}" if value < 0 else text

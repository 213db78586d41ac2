"""Numbers in the format of the request's language."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from django.utils.formats import number_format
from django.utils.translation import gettext, pgettext

from console.charts.chart import COUNT, Unit

_NOTEWORTHY: Final = 0.0005  # smaller changes would round to zero
_CONFIDENCE_95: Final = 1.96  # standard deviations


@dataclass(frozen=True, slots=True)
class FigureChange:
    """The change from the previous period."""

    text: str
    icon: str  # rise | fall | same
    tone: str  # good | bad | "": neither
    is_noise: bool = False  # chance alone may explain the change


def format_number(value: float, num_decimals: int) -> str:
    """Return the rounded number. number_format alone would truncate it."""
    rounded = round(value, num_decimals)
    return number_format(rounded, decimal_pos=num_decimals, use_l10n=True, force_grouping=True)


def format_count(value: float) -> str:
    return format_number(value, 0)


def format_short_count(value: float) -> str:
    """Return the number for axes: 12k, 3.4M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            has_no_decimal = (value * 10 / size) % 10 < 0.5  # no decimal to show
            return f"{format_number(value / size, 0 if has_no_decimal else 1)}{letter}"
    return format_number(value, 0 if value == int(value) else 1)


def format_percent(amount: object) -> str:
    """Return 12.5%, or in German 12,5 %."""
    # Translators: in German "%(amount)s %%", with a no-break space.
    return pgettext("a percentage", "%(amount)s%%") % {"amount": amount}


def format_share(value: float) -> str:
    return format_percent(format_number(value * 100, 1))


def format_axis_share(value: float) -> str:
    amount = round(value * 100, 6)  # .3 * 100 is not exactly 30
    return format_percent(format_number(amount, 0 if amount == int(amount) else 1))


COUNTS: Final = Unit(COUNT, format_short_count, format_count)
SHARES: Final = Unit("share", format_axis_share, format_share)


def format_milliseconds(value: float) -> str:
    return f"{format_count(value)} ms" if value >= 10 else f"{format_number(value, 1)} ms"


def format_one_decimal(value: float) -> str:
    return format_number(value, 1)


def describe_change(
    now: float | None,
    before: float | None,
    *,
    is_share: bool = False,
    better: str = "",
    noise: float = 0.0,
) -> FigureChange | None:
    """Return the change; None without a previous value. Shares change in percentage points.

    `better` is "more", "less", or "" for neither. A change of at most `noise` is neither good nor
    bad.
    """
    if now is None or before is None or (not is_share and not before):
        return None
    difference = now - before if is_share else now / before - 1
    if abs(difference) < _NOTEWORTHY:
        return FigureChange(gettext("unchanged"), "same", "")
    amount = format_number(abs(difference) * 100, 1)
    sign = "+" if difference > 0 else "−"
    text = f"{amount} {gettext('points')}" if is_share else format_percent(amount)
    is_better = (difference > 0) == (better == "more")
    is_noise = abs(difference) <= noise
    icon = "rise" if difference > 0 else "fall"
    tone = "" if not better or is_noise else ("good" if is_better else "bad")
    return FigureChange(f"{sign}{text}", icon, tone, is_noise)


def share_noise(now: float | None, before: float | None, sizes: Sequence[int]) -> float:
    """Return the largest difference of two shares that chance explains, with 95% confidence.

    `sizes` are the numbers of observations of both. 1.0 if a share or size is missing. See
    "two-proportion z-test".
    """
    if now is None or before is None or not all(sizes):
        return 1.0
    pooled = (now * sizes[0] + before * sizes[1]) / sum(sizes)
    return _CONFIDENCE_95 * sqrt(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1]))

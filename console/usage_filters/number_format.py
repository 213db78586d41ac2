"""Numbers and their changes as text, in the format of the page's language."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from django.utils.formats import number_format
from django.utils.translation import gettext, pgettext

from console.charts.chart import COUNT, Unit

_MIN_CHANGE: Final = 0.0005  # smaller changes would be shown as 0.0%
_CONFIDENCE_95: Final = 1.96  # standard deviations of a normal distribution, for 95% confidence


@dataclass(frozen=True, slots=True)
class FigureChange:
    """The change of a figure from the previous period."""

    text: str  # such as "+3.2%"
    icon: str  # rise | fall | same
    tone: str  # good | bad | "": neither
    is_noise: bool = False  # True: chance alone may explain the change


def format_number(value: float, num_decimals: int) -> str:
    """Return the number, rounded. Django's number_format alone would truncate it."""
    rounded = round(value, num_decimals)
    return number_format(rounded, decimal_pos=num_decimals, use_l10n=True, force_grouping=True)


def format_count(value: float) -> str:
    return format_number(value, 0)


def format_short_count(value: float) -> str:
    """Return the number for the axis of a chart, such as 12k or 3.4M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        # Four decimals of this unit are one decimal of the next smaller unit. Without rounding,
        # 999,960 would be shown as 1,000k.
        if round(value / size, 4) >= 1:
            amount = round(value / size, 1)
            return f"{format_number(amount, 0 if amount == int(amount) else 1)}{letter}"
    return format_number(value, 0 if value == int(value) else 1)


def format_percent(amount: object) -> str:
    """Return the formatted number `amount` with a percent sign: 12.5%, or in German 12,5 %."""
    # Translators: in German "%(amount)s %%", with a no-break space.
    return pgettext("a percentage", "%(amount)s%%") % {"amount": amount}


def format_share(share: float) -> str:
    """Return the share 0.125 as 12.5%."""
    return format_percent(format_number(share * 100, 1))


def format_axis_share(share: float) -> str:
    """Return the share for the axis of a chart: without a decimal if it is a whole percentage."""
    amount = round(share * 100, 6)  # .3 * 100 is not exactly 30
    return format_percent(format_number(amount, 0 if amount == int(amount) else 1))


COUNTS: Final = Unit(COUNT, format_short_count, format_count)
SHARES: Final = Unit("share", format_axis_share, format_share)


def format_milliseconds(value_ms: float) -> str:
    """Return the milliseconds: whole ones from 10 ms on, with one decimal below."""
    return f"{format_count(value_ms)} ms" if value_ms >= 10 else f"{format_number(value_ms, 1)} ms"


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
    """Return the change from `before` to `now`; None without a previous value or a current one.

    A share changes in percentage points, another figure in percent. From 0, there is no change in
    percent: the result is None. `better` says which change is good: "more", "less", or "" for
    neither. A change of at most `noise` (0.05 is 5% or 5 points) is neither good nor bad.
    """
    if now is None or before is None or (not is_share and not before):
        return None
    difference = now - before if is_share else now / before - 1
    if abs(difference) < _MIN_CHANGE:
        return FigureChange(gettext("unchanged"), "same", "")
    amount = format_number(abs(difference) * 100, 1)
    sign = "+" if difference > 0 else "−"
    text = f"{amount} {gettext('points')}" if is_share else format_percent(amount)
    is_noise = abs(difference) <= noise
    icon = "rise" if difference > 0 else "fall"
    tone = ""
    if better and not is_noise:
        tone = "good" if (difference > 0) == (better == "more") else "bad"
    return FigureChange(f"{sign}{text}", icon, tone, is_noise)


def share_noise(now: float | None, before: float | None, sizes: Sequence[int]) -> float:
    """Return the largest difference of two shares that chance explains, with 95% confidence.

    `sizes` are the numbers of observations behind `now` and `before`. If a share is None or a size
    is 0, the result is 1.0: chance explains every difference. Source: the two-proportion z-test.
    """
    if now is None or before is None or not all(sizes):
        return 1.0
    pooled = (now * sizes[0] + before * sizes[1]) / sum(sizes)
    return _CONFIDENCE_95 * sqrt(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1]))

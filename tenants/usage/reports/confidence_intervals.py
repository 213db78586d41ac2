"""Confidence intervals at 95 percent. Pure.

They assume independent observations. Suggestions to the same user are not quite independent, so
correct intervals would be slightly wider.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

_Z: Final = 1.959964  # quantile of the normal distribution at 97.5 percent


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    value: float
    low: float  # lower end of the interval
    high: float  # upper end of the interval

    @property
    def excludes_zero(self) -> bool:
        """Return whether zero is outside the interval. Then a difference is significant."""
        return self.low > 0 or self.high < 0


def proportion_interval(part: int, total: int) -> IntervalEstimate | None:
    """Return Wilson's score interval; None: `total` is 0.

    It is also accurate for few observations and for shares near 0 and 1.
    """
    if not total:
        return None
    share, squared = part / total, _Z**2
    centre = (share + squared / (2 * total)) / (1 + squared / total)
    deviation = sqrt(share * (1 - share) / total + squared / (4 * total**2))
    reach = _Z * deviation / (1 + squared / total)
    return IntervalEstimate(share, max(0.0, centre - reach), min(1.0, centre + reach))


def mean_interval(mean: float | None, deviation: float | None, num: int) -> IntervalEstimate | None:
    """Return the interval of a mean by the normal approximation; None: fewer than two values.

    `deviation` is the sample's standard deviation.
    """
    if mean is None or deviation is None or num < 2:  # a single value has no deviation
        return None
    reach = _Z * deviation / sqrt(num)
    return IntervalEstimate(mean, mean - reach, mean + reach)


def difference_interval(
    first: IntervalEstimate | None, second: IntervalEstimate | None
) -> IntervalEstimate | None:
    """Return the interval of `first` minus `second`; None: one of them is missing.

    Uses Newcombe's square-and-add method, which for means is Welch's interval without the
    correction for few degrees of freedom.
    """
    if first is None or second is None:
        return None
    value = first.value - second.value
    below = sqrt((first.value - first.low) ** 2 + (second.high - second.value) ** 2)
    above = sqrt((first.high - first.value) ** 2 + (second.value - second.low) ** 2)
    return IntervalEstimate(value, value - below, value + above)

"""How sure a number is: confidence intervals, at 95 percent. Pure.

They take each observation for one of its own. Suggestions to the same person are not quite, so that
the truth is a little less sure than they say.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

_Z: Final = 1.959964  # of the normal distribution, at 97.5 percent


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Of a difference: it is more than chance would make of none."""
        return self.low > 0 or self.high < 0


def proportion_interval(part: int, whole: int) -> IntervalEstimate | None:
    """Wilson's score interval: right for few observations and for shares near 0 and 1, too. None:
    there is nothing to divide by."""
    if not whole:
        return None
    share, squared = part / whole, _Z**2
    centre = (share + squared / (2 * whole)) / (1 + squared / whole)
    spread = sqrt(share * (1 - share) / whole + squared / (4 * whole**2))
    reach = _Z * spread / (1 + squared / whole)
    return IntervalEstimate(share, max(0.0, centre - reach), min(1.0, centre + reach))


def mean_interval(mean: float | None, deviation: float | None, num: int) -> IntervalEstimate | None:
    """By the normal distribution, to which the means of many come near. `deviation`: the sample's.
    None: there are fewer than two."""
    if mean is None or deviation is None or num < 2:  # one has no deviation
        return None
    reach = _Z * deviation / sqrt(num)
    return IntervalEstimate(mean, mean - reach, mean + reach)


def difference_interval(
    one: IntervalEstimate | None, other: IntervalEstimate | None
) -> IntervalEstimate | None:
    """`one` less `other`, by Newcombe's square-and-add of both intervals: of means it is Welch's,
    without the few degrees of freedom. None: of one there is none."""
    if one is None or other is None:
        return None
    value = one.value - other.value
    below = sqrt((one.value - one.low) ** 2 + (other.high - other.value) ** 2)
    above = sqrt((one.high - one.value) ** 2 + (other.value - other.low) ** 2)
    return IntervalEstimate(value, value - below, value + above)

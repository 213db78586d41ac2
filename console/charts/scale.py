"""Conversion of values to heights, with rounded tick values."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

_STEPS: Final = (1, 2, 2.5, 5, 10)
_NOTHING: Final = 1e-9  # invisible; for much smaller floats the logarithm of a tick fails
_NUM_TICKS: Final = 4  # at most, besides 0


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale from 0 with evenly spaced ticks."""

    top: float
    ticks: tuple[float, ...]  # ascending, from 0 to `top`

    def to_share(self, value: float) -> float:
        """Return the height as a share of the chart, 0 to 1."""
        return min(1.0, max(0.0, value / self.top))


def scale_of(values: Iterable[float | None], *, at_most: float | None = None) -> Scale:
    """Return the scale of the values. `at_most` is their natural maximum, such as 1 for shares."""
    highest = max((value for value in values if value and value > _NOTHING), default=1.0)
    step = _step(highest / _NUM_TICKS)
    num = max(1, ceil(round(highest / step, 9)))
    if at_most is not None and step * num > at_most:
        step, num = at_most / _NUM_TICKS, _NUM_TICKS
    return Scale(step * num, tuple(step * place for place in range(num + 1)))


def _step(least: float) -> float:
    """Return the next round number."""
    power = 10.0 ** floor(log10(least))
    return next(power * step for step in _STEPS if power * step >= least * (1 - 1e-9))

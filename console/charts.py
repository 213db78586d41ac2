"""Charts as numbers: templates draw them as SVG, so a page needs no script."""

from dataclasses import dataclass
from typing import Final

CHART_WIDTH: Final = 480
CHART_HEIGHT: Final = 72
_GAP: Final = 4
_MIN_BAR: Final = 2.0  # an hour with a single request is still seen


@dataclass(frozen=True, slots=True)
class Bar:
    """In the units of a CHART_WIDTH x CHART_HEIGHT picture, from the top left."""

    x: float
    y: float
    width: float
    height: float
    label: str


def hourly_bars(requests: list[int]) -> list[Bar]:
    """One bar for each hour, oldest first, scaled to the busiest."""
    busiest = max(requests, default=0)
    step = CHART_WIDTH / max(len(requests), 1)
    bars = []
    for number, count in enumerate(requests):
        height = max(_MIN_BAR, CHART_HEIGHT * count / busiest) if count else 1.0
        ago = len(requests) - 1 - number
        when = "this hour" if ago == 0 else f"{ago} h ago"
        bars.append(
            Bar(
                x=round(number * step + _GAP / 2, 1),
                y=round(CHART_HEIGHT - height, 1),
                width=round(step - _GAP, 1),
                height=round(height, 1),
                label=f"{when}: {count}",
            )
        )
    return bars

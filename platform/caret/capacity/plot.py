"""A plot of first-token latency over hit rates, as one SVG for light and dark backgrounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from caret.capacity.plan import CapacityPlan, HitRateRow, compute_hit_rate_row
from caret.capacity.time_to_first_token import FirstTokenLatency

# Size and margins, in units of the SVG's view box. The small numbers in the drawing functions are
# distances in the same units, such as from a line to its label.
_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 96, 78, 64
_CURVE_STEPS: Final = 1_000
_STYLE: Final = """
svg { background: #ffffff; color: #1f2328; font: 13px system-ui, sans-serif }
text { fill: currentColor }
.title { font-size: 16px; font-weight: 600 }
.quiet { opacity: .72 }
.grid { stroke: currentColor; opacity: .14 }
.mark { stroke: currentColor; stroke-dasharray: 5 4; opacity: .8 }
.overload { fill: #cf222e; opacity: .12 }
.p50 { stroke: #1a7f37 } .p95 { stroke: #0969da } .p99 { stroke: #bc4c00 }
.curve { fill: none; stroke-width: 2.5; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; color: #e6edf3 }
  .overload { fill: #ff7b72; opacity: .2 }
  .p50 { stroke: #3fb950 } .p95 { stroke: #58a6ff } .p99 { stroke: #f0883e }
}
"""
_QUANTILES: Final[dict[str, Callable[[FirstTokenLatency], float]]] = {
    "p50": lambda latency: latency.p50_ms,
    "p95": lambda latency: latency.p95_ms,
    "p99": lambda latency: latency.p99_ms,
}


@dataclass(frozen=True, slots=True)
class PlotLabels:
    """The texts of the plot, so that pages can translate them."""

    title: str = "First token over prefix-cache hit rate"
    # With `requests_per_s`, `num_gpus` and `context_tokens`, already formatted, and `queue`.
    load: str = (
        "%(requests_per_s)s requests/s on %(num_gpus)s GPUs, prompts of %(context_tokens)s tokens,"
        " %(queue)s queue"
    )
    x_axis: str = "share of prompt tokens that are cached (%)"
    y_axis: str = "first token (ms)"
    overloaded: str = "overloaded"


_ENGLISH: Final = PlotLabels()


class _Scale:
    """Axes: hit rates horizontally, milliseconds vertically on a logarithmic scale."""

    def __init__(self, low_rate: float, values_ms: Sequence[float]) -> None:
        self.low_rate = low_rate
        # The ends of the vertical axis, as exponents of ten.
        self.low = math.floor(math.log10(max(min(values_ms), 0.1)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values_ms))))

    def x(self, hit_rate: float) -> float:
        share = (hit_rate - self.low_rate) / (1 - self.low_rate)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value_ms: float) -> float:
        decades = math.log10(max(value_ms, 10.0**self.low)) - self.low
        height = _HEIGHT - _TOP - _BOTTOM
        return _HEIGHT - _BOTTOM - height * decades / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The plot and its geometry, for scripts that move a mark in it."""

    svg: str
    left: float  # x of the horizontal axis's beginning
    right: float  # x of its end
    low_rate: float  # the hit rate at `left`; the hit rate at `right` is 1
    curve: tuple[HitRateRow, ...]  # ascending


def draw(plan: CapacityPlan) -> str:
    """Return a standalone SVG file with its styles."""
    return draw_plot(plan, style=_STYLE).svg + "\n"


def draw_plot(
    plan: CapacityPlan, *, style: str = "", steps: int = _CURVE_STEPS, labels: PlotLabels = _ENGLISH
) -> Drawing:
    """Draw the plot. Leave `style` empty if the page has styles for the classes.

    Raises InvalidInput.
    """
    figures, curve = plan.figures, _compute_curve(plan, steps)
    overloaded_rates = [row.hit_rate for row in curve if row.sustained is None]
    served_rates = [(row.hit_rate, row.sustained) for row in curve if row.sustained is not None]
    # Higher values are not drawn: far beyond the target, exact values do not matter.
    max_ms = max(100 * figures.target_ms, 10_000.0)
    values_ms = [
        min(read_ms(latency), max_ms)
        for _, latency in served_rates
        for read_ms in _QUANTILES.values()
    ]
    scale = _Scale(_find_low_rate(overloaded_rates), [*values_ms, figures.target_ms])
    parts = [
        *([_write_element("style", style)] if style else []),
        *_draw_titles(plan, labels),
        *_draw_overload(overloaded_rates, scale, labels),
        *_draw_axes(scale, labels),
        *_draw_marks(plan, scale),
        *_draw_curves(served_rates, scale, max_ms, scale.y(figures.target_ms)),
    ]
    picture = _write_element(
        "svg",
        "\n".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=labels.title,
    )
    return Drawing(picture, _LEFT, _WIDTH - _RIGHT, scale.low_rate, tuple(curve))


def _compute_curve(plan: CapacityPlan, steps: int) -> list[HitRateRow]:
    """Compute rows up to the hit rate at which all requests are warm.

    If the given hit rate is higher, the rows end at the given hit rate.
    """
    figures = plan.figures
    all_warm = 1 - figures.warm_tokens / figures.context_tokens
    last = max(all_warm, figures.hit_rate)
    return [
        compute_hit_rate_row(figures, last * index / steps, plan.num_gpus)
        for index in range(steps + 1)
    ]


def _find_low_rate(overloaded_rates: Sequence[float]) -> float:
    """Return the lowest hit rate to draw.

    It is the multiple of 5% that is 5% to 10% below the overload's end, so that a part of the
    overload is drawn. It is at most 90%, and 0 if the overload ends at or below 10%.
    """
    overload_end = max(overloaded_rates, default=0.0)
    return min(0.9, math.floor(overload_end * 20 - 1) / 20) if overload_end > 0.1 else 0.0


def _draw_titles(plan: CapacityPlan, labels: PlotLabels) -> list[str]:
    figures = plan.figures
    load = labels.load % {
        "requests_per_s": f"{figures.requests_per_s:,.4g}",
        "num_gpus": f"{plan.num_gpus:,}",
        "context_tokens": f"{figures.context_tokens:,.0f}",
        "queue": figures.queue,
    }
    return [
        _write_text(labels.title, _LEFT, 28, class_="title"),
        _write_text(load, _LEFT, 48, class_="quiet"),
    ]


def _draw_axes(scale: _Scale, labels: PlotLabels) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    # Percent between two grid lines. If fewer hit rates are drawn, the lines are closer.
    step = 10 if scale.low_rate < 0.5 else (5 if scale.low_rate < 0.8 else 2)
    for percent in range(100, round(scale.low_rate * 100) - 1, -step):
        x = scale.x(percent / 100)
        parts.append(_write_line(x, _TOP, x, bottom, class_="grid"))
        parts.append(_write_text(f"{percent}", x, bottom + 20, text_anchor="middle"))
    for decade in range(scale.low, scale.high + 1):
        y = scale.y(10.0**decade)
        parts.append(_write_line(_LEFT, y, right, y, class_="grid"))
        parts.append(_write_text(f"{10.0**decade:,g}", _LEFT - 10, y + 4, text_anchor="end"))
    parts.append(
        _write_text(labels.x_axis, (_LEFT + right) / 2, _HEIGHT - 20, text_anchor="middle")
    )
    middle_y = (_TOP + bottom) / 2
    label_attributes = {"text_anchor": "middle", "transform": f"rotate(-90 20 {middle_y:g})"}
    parts.append(_write_text(labels.y_axis, 20, middle_y, **label_attributes))
    return parts


def _draw_overload(
    overloaded_rates: Sequence[float], scale: _Scale, labels: PlotLabels
) -> list[str]:
    """Mark the hit rates at which the load overloads the fleet."""
    if not overloaded_rates:
        return []
    x, bottom = scale.x(max(overloaded_rates)), _HEIGHT - _BOTTOM
    size = {"x": _LEFT, "y": _TOP, "width": x - _LEFT, "height": bottom - _TOP}
    parts = [_write_element("rect", **size, class_="overload")]
    if x - _LEFT > 90:  # wide enough for the label
        parts.append(
            _write_text(labels.overloaded, (_LEFT + x) / 2, _TOP + 24, text_anchor="middle")
        )
    return parts


def _draw_marks(plan: CapacityPlan, scale: _Scale) -> list[str]:
    """Mark the target and the given hit rate."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    x, y = scale.x(plan.figures.hit_rate), scale.y(plan.figures.target_ms)
    parts = [
        _write_line(_LEFT, y, right, y, class_="mark"),
        _write_text(f"{plan.figures.target_ms:g} ms", right + 8, y + 4),
    ]
    if x >= _LEFT:
        parts.append(_write_line(x, _TOP, x, bottom, class_="mark"))
        share = f"{plan.figures.hit_rate * 100:.4g}%"
        parts.append(_write_text(share, x, _TOP - 6, text_anchor="middle"))
    return parts


def _draw_curves(
    served_rates: Sequence[tuple[float, FirstTokenLatency]],
    scale: _Scale,
    max_ms: float,
    target_y: float,
) -> list[str]:
    parts: list[str] = []
    # Keep the legend clear of the target's label, which is in the same margin.
    top = target_y + 24 if target_y < _TOP + 60 else _TOP + 12
    for index, (name, read_ms) in enumerate(_QUANTILES.items()):
        points = [
            (scale.x(rate), scale.y(read_ms(latency)))
            for rate, latency in served_rates
            if read_ms(latency) <= max_ms
        ]
        if points:
            parts.append(_write_polyline(points, class_=f"curve {name}"))
        x, y = _WIDTH - _RIGHT + 8, top + 20 * index
        parts.append(_write_line(x, y - 4, x + 20, y - 4, class_=f"curve {name}"))
        parts.append(_write_text(name, x + 28, y))
    return parts


def _write_element(name: str, content: str = "", /, **attributes: object) -> str:
    """Write an element.

    In attribute names, final underscores are dropped, and all others become hyphens.
    """
    attribute_text = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_format_value(value))}"
        for key, value in attributes.items()
    )
    return (
        f"<{name}{attribute_text}>{content}</{name}>" if content else f"<{name}{attribute_text}/>"
    )


def _write_text(text: str, x: float, y: float, **attributes: object) -> str:
    return _write_element("text", escape(text), x=x, y=y, **attributes)


def _write_line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> str:
    return _write_element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def _write_polyline(points: list[tuple[float, float]], **attributes: object) -> str:
    coordinates = " ".join(f"{_format_value(x)},{_format_value(y)}" for x, y in points)
    return _write_element("polyline", points=coordinates, **attributes)


def _format_value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

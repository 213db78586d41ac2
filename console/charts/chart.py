"""Charts of values over time, as stacked columns or lines, with their data table.

The drawing has WIDTH x HEIGHT units, with its origin at the top left. The browser stretches it to
the size of the page. Circles and visible text would be distorted, so the drawing contains neither.
A script (charts.js) replaces the drawing by an interactive version with the same rows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

_STEPS: Final = (1, 2, 2.5, 5, 10)  # distances of ticks, multiplied by a power of ten
# Smaller values are ignored: for the smallest floats, no step could be computed.
_MIN_VALUE: Final = 1e-9
_MAX_TICKS: Final = 4  # besides 0


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale from 0 with evenly spaced ticks."""

    top: float
    ticks: tuple[float, ...]  # ascending, from 0 to `top`

    def to_share(self, value: float) -> float:
        """Return the height as a share of the chart, 0 to 1."""
        return min(1.0, max(0.0, value / self.top))


def scale_of(
    values: Iterable[float | None], *, at_most: float | None = None, is_whole: bool = False
) -> Scale:
    """Return a scale for the values.

    `at_most` is the highest possible value, such as 1 for shares; None: unlimited. `is_whole`: the
    ticks are whole numbers.
    """
    highest = max((value for value in values if value and value > _MIN_VALUE), default=1.0)
    step = _round_step(highest / _MAX_TICKS)
    if is_whole:
        step = float(ceil(step))
    # Rounded, so that a quotient such as 3.0000000000000004 needs no fourth step.
    num_steps = max(1, ceil(round(highest / step, 9)))
    if at_most is not None and step * num_steps > at_most:
        step, num_steps = at_most / _MAX_TICKS, _MAX_TICKS
    return Scale(step * num_steps, tuple(step * index for index in range(num_steps + 1)))


def _round_step(minimum: float) -> float:
    """Return the smallest round number that is at least `minimum`, except for rounding errors."""
    power = 10.0 ** floor(log10(minimum))
    return next(power * step for step in _STEPS if power * step >= minimum * (1 - 1e-9))


WIDTH: Final = 1000
HEIGHT: Final = 200
_MAX_GAP: Final = 6.0  # between columns, in units of the drawing
_MIN_HEIGHT: Final = 1.5  # in units of the drawing; keeps a single request visible beside many
_MAX_DASH: Final = 3.0  # length of the line at a single value, in units of the drawing
_MAX_LABELS: Final = 5  # below the chart
_MISSING: Final = "–"  # text of a value that is None

COUNT: Final = "count"  # name of the unit of whole numbers
Value = float | None  # None: missing or suppressed
FormatValue = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a chart's values, with their text formats."""

    name: str  # COUNT, "share" or a currency code; the script formats values by it
    short: FormatValue  # for the axis
    exact: FormatValue  # for the data table


@dataclass(frozen=True, slots=True)
class Time:
    """A position on the time axis: an hour or a day."""

    label: str
    day: date | None = None  # the UTC day; None: an hour, so users cannot zoom in to it


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    values: Sequence[Value]  # one for each time


@dataclass(frozen=True, slots=True)
class ChartShape:
    """A rectangle, in units of the drawing: one value of a series in a column."""

    kind: int  # number of its series, from 1; selects the color and pattern
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """The stacked shapes of one time, with a hover area of the full height."""

    x: float
    width: float
    parts: tuple[ChartShape, ...]
    label: str  # for the tooltip: the time and all values


@dataclass(frozen=True, slots=True)
class ChartLine:
    kind: int  # as in ChartShape
    path: str  # SVG path


@dataclass(frozen=True, slots=True)
class ChartCell:
    value: Value
    text: str  # the formatted value


@dataclass(frozen=True, slots=True)
class ChartTableRow:
    time: Time
    cells: tuple[ChartCell, ...]  # in the order of the series
    total: str  # the formatted sum; "": a chart of lines, or of one series


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    unit: str  # Unit.name
    columns: tuple[ChartColumn, ...]  # one for each time; without shapes in a chart of lines
    lines: tuple[ChartLine, ...]  # empty in a chart of columns
    rules: tuple[float, ...]  # y positions of the grid lines, the lowest tick first
    ticks: tuple[str, ...]  # labels of the ticks, the highest tick first
    labels: tuple[str, ...]  # labels of some times, evenly spaced
    legend: tuple[tuple[int, str], ...]  # kind and name of each series
    head: tuple[str, ...]  # of the data table: the names of the series
    rows: tuple[ChartTableRow, ...]  # of the data table: the values of each time

    width: int = WIDTH
    height: int = HEIGHT

    @property
    def has_totals(self) -> bool:
        return any(row.total for row in self.rows)

    @property
    def has_days(self) -> bool:
        return any(row.time.day for row in self.rows)


def build_bar_chart(
    title: str, times: Sequence[Time], series: Sequence[Series], unit: Unit
) -> Chart:
    """Return a chart of stacked columns, with the first series at the bottom."""
    sums = [sum(value or 0 for value in values) for values in _by_time(series)]
    scale = scale_of(sums, is_whole=unit.name == COUNT)
    return _build_chart(title, times, series, unit, scale, is_lines=False)


def build_line_chart(
    title: str,
    times: Sequence[Time],
    series: Sequence[Series],
    unit: Unit,
    *,
    at_most: float | None = None,
) -> Chart:
    """Return a chart of lines, with gaps where values are missing. `at_most`: see scale_of."""
    scale = scale_of((value for line in series for value in line.values), at_most=at_most)
    return _build_chart(title, times, series, unit, scale, is_lines=True)


def _build_chart(
    title: str,
    times: Sequence[Time],
    series: Sequence[Series],
    unit: Unit,
    scale: Scale,
    *,
    is_lines: bool,
) -> Chart:  # fmt: skip
    has_totals = not is_lines and len(series) > 1
    by_time = zip(times, _by_time(series), strict=True)
    rows = tuple(_table_row(time, values, unit, has_totals=has_totals) for time, values in by_time)
    step = WIDTH / max(len(times), 1)
    bar_series = () if is_lines else series
    return Chart(
        title=title,
        unit=unit.name,
        columns=tuple(
            ChartColumn(
                x=round(index * step, 2),
                width=round(step, 2),
                parts=_shapes_at(index, step, [bar.values[index] for bar in bar_series], scale),
                label=_describe_row(series, row),
            )
            for index, row in enumerate(rows)
        ),
        lines=tuple(
            ChartLine(kind, _line_path(line.values, step, scale))
            for kind, line in enumerate(series, 1)
        )
        if is_lines
        else (),
        rules=tuple(round(HEIGHT * (1 - scale.to_share(tick)), 2) for tick in scale.ticks),
        ticks=tuple(unit.short(tick) for tick in reversed(scale.ticks)),
        labels=_axis_labels([time.label for time in times]),
        legend=tuple((kind, item.name) for kind, item in enumerate(series, 1)),
        head=tuple(item.name for item in series),
        rows=rows,
    )


def _by_time(series: Sequence[Series]) -> list[tuple[Value, ...]]:
    """Return the values of all series for each time."""
    return list(zip(*(item.values for item in series), strict=True))


def _table_row(
    time: Time, values: Sequence[Value], unit: Unit, *, has_totals: bool
) -> ChartTableRow:
    known_values = [value for value in values if value is not None]
    total = ""
    if has_totals:
        total = unit.exact(sum(known_values)) if known_values else _MISSING
    return ChartTableRow(
        time=time,
        cells=tuple(
            ChartCell(value, _MISSING if value is None else unit.exact(value)) for value in values
        ),
        total=total,
    )


def _describe_row(series: Sequence[Series], row: ChartTableRow) -> str:
    cell_texts = (f"{item.name} {cell.text}" for item, cell in zip(series, row.cells, strict=True))
    return f"{row.time.label}: {', '.join(cell_texts)}"


def _shapes_at(
    index: int, step: float, values: Sequence[Value], scale: Scale
) -> tuple[ChartShape, ...]:
    gap = min(_MAX_GAP, step / 4)
    shapes, stack_y = [], float(HEIGHT)  # stack_y: top of the shapes so far
    for kind, value in enumerate(values, 1):
        if not value:
            continue
        height = max(_MIN_HEIGHT, HEIGHT * scale.to_share(value))
        stack_y -= height
        x, width = index * step + gap / 2, step - gap
        # `stack_y` can be negative, because each shape has at least _MIN_HEIGHT.
        shapes.append(
            ChartShape(
                kind, round(x, 2), round(max(0, stack_y), 2), round(width, 2), round(height, 2)
            )
        )
    return tuple(shapes)


def _line_path(values: Sequence[Value], step: float, scale: Scale) -> str:
    """Return the SVG path through the middle of each time that has a value.

    After a gap, the path begins with a short horizontal line, so that a single value is visible.
    """
    commands: list[str] = []
    for index, (before, value) in enumerate(pairwise([None, *values])):
        if value is None:
            continue
        x, y = (index + 0.5) * step, HEIGHT * (1 - scale.to_share(value))
        commands.append(f"{'M' if before is None else 'L'}{x:.1f} {y:.1f}")
        if before is None:
            commands.append(f"h{min(step / 4, _MAX_DASH):.1f}")
    return "".join(commands)


def _axis_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the first and the last label, and evenly spaced labels between them."""
    num = min(_MAX_LABELS, len(labels))
    if num < 2:
        return tuple(labels)
    return tuple(labels[round(index * (len(labels) - 1) / (num - 1))] for index in range(num))

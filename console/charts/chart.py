"""Charts of values over time, as stacked columns or lines, with their data table.

The drawing is WIDTH x HEIGHT, with its origin at the top left. The browser stretches it, so it
contains nothing round and no text. A script draws an interactive version from the same rows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

_STEPS: Final = (1, 2, 2.5, 5, 10)
_MIN_VISIBLE: Final = 1e-9  # smaller values are invisible; for much smaller ones, log10 fails
_NUM_TICKS: Final = 4  # at most, besides 0


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
    """Return the scale of the values. `at_most` is their natural maximum, such as 1 for shares.

    `is_whole`: only whole numbers have a tick.
    """
    highest = max((value for value in values if value and value > _MIN_VISIBLE), default=1.0)
    step = _round_step(highest / _NUM_TICKS)
    if is_whole:
        step = float(ceil(step))
    num = max(1, ceil(round(highest / step, 9)))
    if at_most is not None and step * num > at_most:
        step, num = at_most / _NUM_TICKS, _NUM_TICKS
    return Scale(step * num, tuple(step * index for index in range(num + 1)))


def _round_step(minimum: float) -> float:
    """Return the smallest round number that is at least `minimum`."""
    power = 10.0 ** floor(log10(minimum))
    return next(power * step for step in _STEPS if power * step >= minimum * (1 - 1e-9))


WIDTH: Final = 1000
HEIGHT: Final = 200
_MAX_GAP: Final = 6.0  # between columns
_MIN_HEIGHT: Final = 1.5  # keeps a single request visible beside many
_NUM_LABELS: Final = 5
_MISSING: Final = "–"

COUNT: Final = "count"  # the unit of whole numbers
Value = float | None  # None: missing or suppressed
FormatValue = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Unit:
    """The format of values."""

    name: str  # for the script: count, share, or a currency code
    short: FormatValue  # for the axis
    exact: FormatValue  # for the data table


@dataclass(frozen=True, slots=True)
class Time:
    label: str
    day: date | None = None  # None: not a UTC day, so it cannot be a filter


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    values: Sequence[Value]


@dataclass(frozen=True, slots=True)
class ChartShape:
    kind: int  # index of its series, from 1; selects the color and pattern
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """The shapes at one time, with a hover area of the full height."""

    x: float
    width: float
    parts: tuple[ChartShape, ...]
    label: str


@dataclass(frozen=True, slots=True)
class ChartLine:
    kind: int  # as in ChartShape
    path: str


@dataclass(frozen=True, slots=True)
class ChartCell:
    value: Value
    text: str


@dataclass(frozen=True, slots=True)
class ChartTableRow:
    time: Time
    cells: tuple[ChartCell, ...]  # in the order of the series
    total: str  # "": sums make no sense, or there is one series


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    unit: str
    columns: tuple[ChartColumn, ...]
    lines: tuple[ChartLine, ...]
    rules: tuple[float, ...]  # y positions of the ticks
    ticks: tuple[str, ...]  # from the top
    labels: tuple[str, ...]  # of the times, evenly spaced
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
    """Return a chart of lines, with gaps where values are missing."""
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
        legend=tuple((kind, line.name) for kind, line in enumerate(series, 1)),
        head=tuple(line.name for line in series),
        rows=rows,
    )


def _by_time(series: Sequence[Series]) -> list[tuple[Value, ...]]:
    return list(zip(*(line.values for line in series), strict=True))


def _table_row(
    time: Time, values: Sequence[Value], unit: Unit, *, has_totals: bool
) -> ChartTableRow:
    known_values = [value for value in values if value is not None]
    return ChartTableRow(
        time=time,
        cells=tuple(
            ChartCell(value, _MISSING if value is None else unit.exact(value)) for value in values
        ),
        total="" if not has_totals else unit.exact(sum(known_values)) if known_values else _MISSING,
    )


def _describe_row(series: Sequence[Series], row: ChartTableRow) -> str:
    cell_texts = (f"{line.name} {cell.text}" for line, cell in zip(series, row.cells, strict=True))
    return f"{row.time.label}: {', '.join(cell_texts)}"


def _shapes_at(
    index: int, step: float, values: Sequence[Value], scale: Scale
) -> tuple[ChartShape, ...]:
    gap = min(_MAX_GAP, step / 4)
    shapes, ground = [], float(HEIGHT)
    for kind, value in enumerate(values, 1):
        if not value:
            continue
        height = max(_MIN_HEIGHT, HEIGHT * scale.to_share(value))
        ground -= height
        x, width = index * step + gap / 2, step - gap
        shapes.append(
            ChartShape(
                kind, round(x, 2), round(max(0, ground), 2), round(width, 2), round(height, 2)
            )
        )
    return tuple(shapes)


def _line_path(values: Sequence[Value], step: float, scale: Scale) -> str:
    """Return the SVG path through the middle of each time.

    Each stretch begins with a short horizontal line, so that a single value is visible.
    """
    commands: list[str] = []
    for (_, before), (index, value) in pairwise(enumerate([None, *values], -1)):
        if value is None:
            continue
        x, y = (index + 0.5) * step, HEIGHT * (1 - scale.to_share(value))
        commands.append(f"{'M' if before is None else 'L'}{x:.1f} {y:.1f}")
        if before is None:
            commands.append(f"h{min(step / 4, 3):.1f}")
    return "".join(commands)


def _axis_labels(times: Sequence[str]) -> tuple[str, ...]:
    """Return the first and last label and evenly spaced ones between; all if there are few."""
    num = min(_NUM_LABELS, len(times))
    if num < 2:  # nothing is between
        return tuple(times)
    return tuple(times[round(index * (len(times) - 1) / (num - 1))] for index in range(num))

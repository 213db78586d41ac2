"""The numbers of charts: ticks, bars, lines, labels and table rows."""

import re
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.charts.chart import (
    HEIGHT,
    WIDTH,
    Chart,
    Series,
    Time,
    Unit,
    build_bar_chart,
    build_line_chart,
    scale_of,
)

_VALUES = st.lists(st.none() | st.floats(0, 1e12), min_size=1, max_size=60)
_MIN_HEIGHT = 1.5  # of a bar, in units of the drawing
UNIT = Unit("count", short=lambda value: f"{value / 1000:g}k", exact=lambda value: f"{value:g}")


def draw_bars(*series: list[float | None]) -> Chart:
    times = [Time(f"{number}h") for number in range(len(series[0]))]
    return build_bar_chart(
        "", times, [Series(f"s{n}", values) for n, values in enumerate(series)], UNIT
    )


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (4, (0, 1, 2, 3, 4)),
        (9, (0, 2.5, 5, 7.5, 10)),
        (81, (0, 25, 50, 75, 100)),
        (0.3, (0, 0.1, 0.2, 0.3)),
        (0, (0, 0.25, 0.5, 0.75, 1)),
    ],
)
def test_ticks_are_round_and_cover_the_highest_value(
    highest: float, ticks: tuple[float, ...]
) -> None:
    scale = scale_of([highest])

    assert scale.ticks == pytest.approx(ticks)


@pytest.mark.parametrize(("highest", "ticks"), [(1, (0, 1)), (3, (0, 1, 2, 3)), (9, (0, 3, 6, 9))])
def test_a_scale_of_counts_has_whole_ticks(highest: float, ticks: tuple[float, ...]) -> None:
    assert scale_of([highest], is_whole=True).ticks == ticks


def test_a_scale_of_shares_ends_at_one() -> None:
    assert scale_of([0.97], at_most=1).top == 1


@given(_VALUES)
def test_bars_stay_within_the_chart_and_stand_on_its_baseline(values: list[float | None]) -> None:
    chart = draw_bars(values)

    parts = [part for column in chart.columns for part in column.parts]
    assert all(part.x >= 0 and part.x + part.width <= WIDTH + 0.01 for part in parts)
    assert all(part.y >= 0 for part in parts)
    # A part of the minimum height may extend below the baseline, by at most its height. Coordinates
    # are rounded, so the sum may differ by a bit more.
    assert all(
        part.y + part.height == pytest.approx(HEIGHT, abs=_MIN_HEIGHT + 0.1) for part in parts
    )


def test_series_are_stacked() -> None:
    below, above = draw_bars([1.0], [3.0]).columns[0].parts

    # The total of 4 takes the whole height, 200. The coordinate `y` is 0 at the top.
    assert (below.y, below.height, above.y, above.height) == (150, 50, 0, 150)


def test_a_small_value_beside_a_large_one_stays_visible() -> None:
    (small, *_) = draw_bars([1, 1_000_000]).columns

    assert small.parts[0].height == _MIN_HEIGHT


def test_a_missing_value_is_not_shown_as_zero() -> None:
    chart = draw_bars([None, 0.0])

    assert [row.cells[0].text for row in chart.rows] == ["–", "0"]


def test_axis_labels_are_short_and_table_values_are_exact() -> None:
    chart = draw_bars([3_210.0, 4_000.0])

    assert (chart.ticks[0], chart.rows[0].cells[0].text) == ("4k", "3210")


def test_totals_add_up_the_known_values() -> None:
    chart = draw_bars([1.0, 2.0, None], [4.0, None, None])

    assert [row.total for row in chart.rows] == ["5", "2", "–"]
    assert chart.has_totals


def test_line_charts_and_single_series_have_no_totals() -> None:
    shares = [Series("s0", [0.5]), Series("s1", [0.25])]

    assert not build_line_chart("", [Time("0h")], shares, UNIT).has_totals
    assert not draw_bars([1.0]).has_totals


def test_charts_by_day_have_days_and_charts_by_hour_do_not() -> None:
    series = [Series("s", [1.0])]

    assert build_bar_chart("", [Time("22 Nov", date(2026, 11, 22))], series, UNIT).has_days
    assert not build_bar_chart("", [Time("22:00")], series, UNIT).has_days


def test_a_line_has_gaps_where_values_are_missing() -> None:
    series = Series("s", [1.0, 2.0, None, None, 1.0])

    (line,) = build_line_chart("", [Time(name) for name in "abcde"], [series], UNIT).lines

    # SVG commands: M begins at a value after a gap, h draws a short horizontal line there, and L
    # draws a line to the next value.
    assert re.sub(r"[^MLh]", "", line.path) == "MhLMh"


def test_each_column_has_a_label_with_its_values() -> None:
    assert draw_bars([3.0], [5.0]).columns[0].label == "0h: s0 3, s1 5"


@pytest.mark.parametrize(("num_bars", "num_labels"), [(1, 1), (2, 2), (7, 5), (24, 5), (91, 5)])
def test_labels_are_evenly_spaced(num_bars: int, num_labels: int) -> None:
    labels = draw_bars([1.0] * num_bars).labels

    hours = [int(label.removesuffix("h")) for label in labels]
    assert len(hours) == num_labels
    steps = [after - before for before, after in pairwise(hours)]
    assert max(steps, default=0) - min(steps, default=0) <= 1  # they may differ by rounding


def test_an_empty_chart_has_no_columns() -> None:
    assert build_bar_chart("", [], [Series("s", [])], UNIT).columns == ()

"""The numbers behind charts."""

import re
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.charts.chart import HEIGHT, WIDTH, Chart, Series, Time, Unit, bars, lines, scale_of

_VALUES = st.lists(st.none() | st.floats(0, 1e12), min_size=1, max_size=60)


UNIT = Unit("count", short=lambda value: f"{value / 1000:g}k", exact=lambda value: f"{value:g}")


def drawn(*series: list[float | None]) -> Chart:
    times = [Time(f"{number}h") for number in range(len(series[0]))]
    return bars("", times, [Series(f"s{n}", values) for n, values in enumerate(series)], UNIT)


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
def test_ticks_are_round_and_reach_over_the_highest(
    highest: float, ticks: tuple[float, ...]
) -> None:
    scale = scale_of([highest])

    assert scale.ticks == pytest.approx(ticks)


def test_a_share_has_no_tick_beyond_all() -> None:
    assert scale_of([0.97], at_most=1).top == 1


@given(_VALUES)
def test_bars_stay_within_the_picture_and_stand_on_its_ground(values: list[float | None]) -> None:
    chart = drawn(values)

    parts = [part for column in chart.columns for part in column.parts]
    assert all(part.x >= 0 and part.x + part.width <= WIDTH + 0.01 for part in parts)
    assert all(part.y >= 0 for part in parts)
    assert all(part.y + part.height == pytest.approx(HEIGHT, abs=1.6) for part in parts)


def test_series_stand_on_top_of_each_other() -> None:
    below, above = drawn([1.0], [3.0]).columns[0].parts

    assert (below.y, below.height, above.y, above.height) == (150, 50, 0, 150)


def test_a_single_request_beside_many_is_still_seen() -> None:
    assert drawn([1, 1_000_000]).columns[0].parts[0].height == 1.5


def test_a_value_that_is_not_told_is_no_nought() -> None:
    chart = drawn([None, 0.0])

    assert [row.cells[0].text for row in chart.rows] == ["–", "0"]


def test_axes_are_short_and_rows_exact() -> None:
    chart = drawn([3_210.0, 4_000.0])

    assert (chart.ticks[0], chart.rows[0].cells[0].text) == ("4k", "3210")


def test_what_stands_on_each_other_is_added_up_as_far_as_it_is_told() -> None:
    chart = drawn([1.0, 2.0, None], [4.0, None, None])

    assert [row.total for row in chart.rows] == ["5", "2", "–"]
    assert chart.has_totals


def test_lines_and_what_stands_alone_have_no_totals() -> None:
    shares = [Series("s0", [0.5]), Series("s1", [0.25])]

    assert not lines("", [Time("0h")], shares, UNIT).has_totals
    assert not drawn([1.0]).has_totals


def test_days_can_be_asked_about_and_hours_cannot() -> None:
    series = [Series("s", [1.0])]

    assert bars("", [Time("22 Nov", date(2026, 11, 22))], series, UNIT).has_days
    assert not bars("", [Time("22:00")], series, UNIT).has_days


def test_a_line_has_gaps_where_values_are_missing() -> None:
    series = Series("s", [1.0, 2.0, None, None, 1.0])

    (line,) = lines("", [Time(name) for name in "abcde"], [series], UNIT).lines

    assert re.sub(r"[^MLh]", "", line.path) == "MhLMh"


def test_each_column_says_what_stands_there() -> None:
    assert drawn([3.0], [5.0]).columns[0].label == "0h: s0 3, s1 5"


@pytest.mark.parametrize(("num", "shown"), [(1, 1), (2, 2), (7, 5), (24, 5), (91, 5)])
def test_labels_are_about_as_far_from_each_other_as_their_times(num: int, shown: int) -> None:
    labels = drawn([1.0] * num).labels

    hours = [int(label[:-1]) for label in labels]
    assert len(hours) == shown
    steps = [after - before for before, after in pairwise(hours)]
    assert max(steps, default=0) - min(steps, default=0) <= 1


def test_without_times_nothing_is_divided() -> None:
    assert bars("", [], [Series("s", [])], UNIT).columns == ()

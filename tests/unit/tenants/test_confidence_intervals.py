"""Confidence intervals, compared with published examples, and their properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.usage.reports.confidence_intervals import (
    difference_interval,
    mean_interval,
    proportion_interval,
)


@pytest.mark.parametrize(
    ("part", "total", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_intervals_of_shares_equal_published_values(
    part: int, total: int, low: float, high: float
) -> None:
    interval = proportion_interval(part, total)

    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),  # Newcombe 1998b, table II, method 10
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_intervals_of_differences_equal_published_values(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    interval = difference_interval(proportion_interval(*first), proportion_interval(*second))

    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)
    assert interval.excludes_zero


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_share_is_within_its_interval(part_and_total: tuple[int, int]) -> None:
    interval = proportion_interval(*part_and_total)

    assert interval is not None
    assert -1e-9 <= interval.low <= interval.value + 1e-9
    assert interval.value - 1e-9 <= interval.high <= 1 + 1e-9


def test_equal_shares_have_no_difference() -> None:
    interval = difference_interval(proportion_interval(30, 100), proportion_interval(30, 100))

    assert interval is not None
    assert interval.value == 0
    assert not interval.excludes_zero


def test_the_mean_of_many_values_has_a_narrow_interval() -> None:
    interval = mean_interval(48.0, 10.0, 400)

    assert interval is not None
    # The standard error is 10 / √400 = 0.5, and the interval has 1.96 of them on each side.
    assert (interval.low, interval.high) == pytest.approx((47.02, 48.98), abs=0.001)


def test_without_data_there_is_no_interval() -> None:
    assert proportion_interval(0, 0) is None
    assert mean_interval(3.0, None, 1) is None
    assert mean_interval(None, None, 0) is None
    assert difference_interval(None, proportion_interval(1, 2)) is None

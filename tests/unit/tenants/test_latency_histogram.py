"""Percentiles from histograms are within their relative error of the measured times."""

from math import ceil, floor, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.usage.rollups.latency_histogram import (
    MIN_MS,
    RELATIVE_ERROR,
    build_bucket_sql,
    compute_percentile_ms,
    merge_histograms,
)

TIMES = st.lists(st.floats(min_value=MIN_MS, max_value=1e7), min_size=1, max_size=200)


def histogram(times: list[float]) -> dict[int, int]:
    """Return the histogram that the SQL statement computes."""
    base = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
    return merge_histograms(([ceil(log(time) / log(base))], [1]) for time in times)


@given(TIMES, st.floats(min_value=0, max_value=100))
def test_a_percentile_is_within_its_error_of_a_time(times: list[float], percent: float) -> None:
    percentile_ms = compute_percentile_ms(histogram(times), percent)

    rank = floor(percent / 100 * (len(times) - 1))
    # The factor allows for the rounding of floating-point numbers.
    assert percentile_ms == pytest.approx(sorted(times)[rank], rel=RELATIVE_ERROR * 1.001)


@given(TIMES, TIMES, st.floats(min_value=0, max_value=100))
def test_merged_histograms_equal_the_histogram_of_all(
    times: list[float], other_times: list[float], percent: float
) -> None:
    parts = [histogram(times), histogram(other_times)]

    added = merge_histograms((part.keys(), part.values()) for part in parts)

    assert compute_percentile_ms(added, percent) == compute_percentile_ms(
        histogram(times + other_times), percent
    )


def test_an_empty_histogram_has_no_percentile() -> None:
    assert compute_percentile_ms({}, 99) is None


def test_the_sql_statement_uses_the_same_base() -> None:
    assert build_bucket_sql("x") == f"ceil(ln(greatest(x, 0.01)) / {log(1.01 / 0.99)!r})::int"

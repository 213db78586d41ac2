"""Rolling quantiles: approximate, and only over the last seconds."""

import pytest

from inference.gateway.load_shedding.rolling_quantiles import NUM_SLOTS, SLOT_S, RollingQuantiles


@pytest.mark.parametrize(("share", "exact"), [(0.5, 500), (0.9, 900), (0.99, 990)])
def test_a_quantile_is_exact_to_five_percent(share: float, exact: float) -> None:
    times = RollingQuantiles()
    for milliseconds in range(1, 1_001):
        times.add(milliseconds, now_s=5.0)

    assert times.quantile(share, now_s=5.0) == pytest.approx(exact, rel=0.05)


def test_without_values_there_is_no_quantile() -> None:
    assert RollingQuantiles().quantile(0.99, now_s=5.0) is None


def test_values_older_than_the_window_are_dropped() -> None:
    times = RollingQuantiles()
    times.add(500.0, now_s=5.0)
    times.add(10.0, now_s=5.0 + NUM_SLOTS * SLOT_S)

    assert times.quantile(0.99, now_s=5.0 + NUM_SLOTS * SLOT_S) == pytest.approx(10, rel=0.05)
    assert times.quantile(0.99, now_s=5.0 + 3 * NUM_SLOTS * SLOT_S) is None


def test_each_second_is_dropped_separately() -> None:
    times = RollingQuantiles()
    for second in range(NUM_SLOTS):
        times.add(10.0, now_s=second + 0.5)

    counts = []
    for second in range(NUM_SLOTS, 2 * NUM_SLOTS):
        times.quantile(0.5, now_s=second + 0.5)  # drops the second that is too old by now
        counts.append(times.count)

    assert counts == list(range(NUM_SLOTS - 1, -1, -1))


@pytest.mark.parametrize("milliseconds", [0.0, -1.0, 1e9])
def test_values_out_of_range_are_counted(milliseconds: float) -> None:
    times = RollingQuantiles()

    times.add(milliseconds, now_s=5.0)

    assert times.count == 1


def test_a_clock_that_jumps_ahead_takes_constant_time() -> None:
    times = RollingQuantiles()
    times.add(10.0, now_s=5.0)

    # A loop over every second would not end.
    assert times.quantile(0.5, now_s=1e12) is None


def test_a_clock_that_starts_at_a_high_value_takes_constant_time() -> None:
    times = RollingQuantiles()

    times.add(10.0, now_s=1e9)

    assert times.count == 1

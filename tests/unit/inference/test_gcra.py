"""The generic cell rate algorithm (GCRA) limits a rate, and allows bursts up to a capacity."""

from hypothesis import given
from hypothesis import strategies as st

from inference.gateway.rate_limits.gcra import Gcra

CAPACITY, INTERVAL_S = 10, 0.5


def _available_units(bucket: Gcra, now_s: float) -> int:
    return bucket.available_units(capacity=CAPACITY, interval_s=INTERVAL_S, now_s=now_s)


def test_a_full_bucket_has_its_capacity() -> None:
    assert _available_units(Gcra(), 100.0) == CAPACITY


def test_a_unit_is_available_again_after_its_interval() -> None:
    bucket = Gcra()
    bucket.spend(CAPACITY, interval_s=INTERVAL_S, now_s=100.0)

    assert [_available_units(bucket, 100.0 + after_s) for after_s in (0.0, 0.49, 0.5, 1.0)] == [
        0,
        0,
        1,
        2,
    ]


def test_the_wait_lasts_until_enough_units_are_available() -> None:
    bucket = Gcra()
    bucket.spend(CAPACITY, interval_s=INTERVAL_S, now_s=100.0)

    wait_s = bucket.wait_s(3, capacity=CAPACITY, interval_s=INTERVAL_S, now_s=100.0)

    assert wait_s == 1.5


def test_refunds_never_exceed_the_capacity() -> None:
    bucket = Gcra()

    bucket.spend(-5, interval_s=INTERVAL_S, now_s=100.0)  # a refund of five units

    assert _available_units(bucket, 100.0) == CAPACITY


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(1, CAPACITY)), max_size=60))
def test_no_period_exceeds_its_rate_plus_one_capacity(
    requests: list[tuple[float, int]],
) -> None:
    bucket, now_s, spent = Gcra(), 100.0, []
    for pause_s, units in requests:
        now_s += pause_s
        if _available_units(bucket, now_s) >= units:
            bucket.spend(units, interval_s=INTERVAL_S, now_s=now_s)
            spent.append((now_s, units))

    # Check each period from one spending to the same or a later one.
    for first, (start_s, _) in enumerate(spent):
        for last in range(first, len(spent)):
            units = sum(units for _, units in spent[first : last + 1])
            period_s = spent[last][0] - start_s
            assert units <= CAPACITY + period_s / INTERVAL_S + 1e-3  # 1e-3: rounding errors

"""The operators' page compares the capacity model with measured first-token times."""

from dataclasses import replace

import pytest

from caret.capacity.inputs import CapacityInputs
from caret.capacity.plan import compute_plan
from caret.contracts.policy import Mode
from console.operator_admin.capacity import check_model
from tenants.fleet.pools.pool_status import FirstToken

PLAN = compute_plan(CapacityInputs(requests_per_s=1.0))
# The times that the model predicts at the plan's hit rate.
(SUSTAINED_TIMES,) = (
    row.sustained for row in PLAN.hit_rates if row.hit_rate == PLAN.figures.hit_rate
)
assert SUSTAINED_TIMES is not None
MEASURED = FirstToken(
    Mode.INLINE,
    p50_ms=SUSTAINED_TIMES.p50_ms,
    p99_ms=SUSTAINED_TIMES.p99_ms,
    target_ms=200,
    count=1_000,
)


@pytest.mark.parametrize(
    ("p50_factor", "p99_factor", "agrees"),
    [(1, 1, True), (1.4, 1.4, True), (1, 2, False), (1, 0.5, False), (3, 1, False)],
)
def test_the_model_agrees_if_both_times_are_within_a_factor_of_one_and_a_half(
    p50_factor: float, p99_factor: float, agrees: bool
) -> None:
    measured = replace(
        MEASURED, p50_ms=MEASURED.p50_ms * p50_factor, p99_ms=MEASURED.p99_ms * p99_factor
    )

    check = check_model(PLAN, [measured])

    assert check is not None
    assert (check.agrees, check.has_enough_requests) == (agrees, True)


def test_the_most_frequent_mode_is_compared() -> None:
    rare = replace(MEASURED, mode=Mode.CHAT, count=3, p99_ms=9_000.0)

    check = check_model(PLAN, [rare, MEASURED])

    assert check is not None
    assert check.mode == "inline"
    assert check.agrees


def test_fewer_than_100_requests_are_too_few() -> None:
    check = check_model(PLAN, [replace(MEASURED, count=99)])

    assert check is not None
    assert not check.has_enough_requests


def test_without_measurements_there_is_no_check() -> None:
    assert check_model(PLAN, []) is None

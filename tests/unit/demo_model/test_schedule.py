"""The schedule of a training: the learning rate, row length and mixture of texts of each step."""

import pytest

from inference.demo_model.training.schedule import (
    COOL_DOWN_SHARES,
    STABLE_SHARES,
    TOKENS_PER_STEP,
    WARM_UP_STEPS,
    TrainingSchedule,
)

STABLE = TrainingSchedule(seed=1)
# The learning rate falls from step 1000 to step 1100.
COOLING = TrainingSchedule(seed=1, cool_down_step=1000, cool_down_steps=100)


@pytest.mark.parametrize(
    ("step", "factor"), [(0, 1 / WARM_UP_STEPS), (WARM_UP_STEPS - 1, 1.0), (10**6, 1.0)]
)
def test_the_rate_warms_up_and_stays_constant(step: int, factor: float) -> None:
    assert STABLE.rate_factor(step) == pytest.approx(factor)


@pytest.mark.parametrize(("step", "factor"), [(999, 1.0), (1000, 1.0), (1050, 0.5), (1100, 0.0)])
def test_a_cool_down_reduces_the_rate_to_zero(step: int, factor: float) -> None:
    assert COOLING.rate_factor(step) == pytest.approx(factor)


def test_a_run_with_a_cool_down_has_a_last_step_and_a_stable_run_has_none() -> None:
    assert (STABLE.end_step, COOLING.end_step) == (None, 1100)


def test_a_cool_down_changes_the_mixture_from_its_first_step() -> None:
    assert COOLING.compose_batch(999).mixture.group_shares == STABLE_SHARES
    assert COOLING.compose_batch(1000).mixture.group_shares == COOL_DOWN_SHARES


def test_early_steps_have_shorter_rows_and_more_echoes() -> None:
    # An echo is a document that contains the same shuffled tokens twice. It teaches copying.
    early = [STABLE.compose_batch(step) for step in range(200)]
    late = [STABLE.compose_batch(step) for step in range(10_000, 10_200)]

    assert {batch.row_tokens for batch in early} == {256, 512, 1024}
    assert {batch.row_tokens for batch in late} == {256, 512, 1024, 2048}
    assert early[0].mixture.echo_share > late[0].mixture.echo_share > 0


def test_every_step_has_the_same_number_of_tokens() -> None:
    # Every 97th step: 97 is a prime, so the samples cover all positions of a repeated pattern.
    batches = [STABLE.compose_batch(step) for step in range(0, 20_000, 97)]

    assert {batch.num_rows * batch.row_tokens for batch in batches} == {TOKENS_PER_STEP}


def test_a_step_does_not_depend_on_previous_steps() -> None:
    assert TrainingSchedule(seed=1).compose_batch(5000) == STABLE.compose_batch(5000)

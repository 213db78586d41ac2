"""The learning rate and the sequence length over a run."""

import pytest

from inference.demo_model.schedule import Schedule

SCHEDULE = Schedule(warm_up_steps=100, decay_start=0.6, long_start=0.9)


@pytest.mark.parametrize(
    ("step", "share", "factor"),
    [(0, 0.0, 0.01), (49, 0.01, 0.5), (99, 0.02, 1.0), (5000, 0.6, 1.0), (5000, 0.8, 0.5)],
)
def test_the_rate_warms_up_stays_and_decays(step: int, share: float, factor: float) -> None:
    assert SCHEDULE.rate_factor(step, share) == pytest.approx(factor)


@pytest.mark.parametrize("share", [1.0, 1.5])
def test_the_rate_is_zero_from_the_end_on(share: float) -> None:
    assert SCHEDULE.rate_factor(5000, share) == 0.0


def test_sequences_are_long_only_late() -> None:
    assert SCHEDULE.sequence_tokens(0.89) == SCHEDULE.short_tokens
    assert SCHEDULE.sequence_tokens(0.9) == SCHEDULE.long_tokens


def test_echoes_are_drawn_only_early() -> None:
    schedule = Schedule(echo_until=0.5, echo_share=0.1)

    assert (schedule.echo_share_at(0.49), schedule.echo_share_at(0.5)) == (0.1, 0.0)

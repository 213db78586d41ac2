"""The whole table of the states of export jobs, listed independently of the code on purpose."""

import pytest

from tenants.compliance.exports.jobs.state_machine import (
    InvalidTransition,
    JobEvent,
    JobState,
    advance,
)

EXPECTED = {
    ("queued", "begin"): "building",
    ("queued", "cancel"): "cancelled",
    ("building", "cancel"): "cancelled",
    ("building", "finish"): "finished",
    ("building", "fail"): "failed",
    ("finished", "expire"): "expired",
}


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("event", list(JobEvent))
def test_a_build_becomes_what_the_table_says_and_nothing_else(
    state: JobState, event: JobEvent
) -> None:
    if (state, event) in EXPECTED:
        assert advance(state, event) == EXPECTED[state, event]
        return
    with pytest.raises(InvalidTransition):
        advance(state, event)

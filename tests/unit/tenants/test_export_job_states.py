"""The state machine of export jobs. The table is deliberately not derived from the code."""

import pytest

from tenants.compliance.exports.jobs.state_machine import (
    InvalidTransition,
    JobEvent,
    JobState,
    advance,
)

EXPECTED = {
    ("queued", "begin"): "running",
    ("queued", "cancel"): "cancelled",
    ("running", "cancel"): "cancelled",
    ("running", "finish"): "finished",
    ("running", "fail"): "failed",
    ("finished", "expire"): "expired",
}


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("event", list(JobEvent))
def test_transitions_of_a_job_match_the_table(state: JobState, event: JobEvent) -> None:
    if (state, event) in EXPECTED:
        assert advance(state, event) == EXPECTED[state, event]
        return
    with pytest.raises(InvalidTransition):
        advance(state, event)

"""The timings of the nine stages, computed from a request trace."""

from itertools import pairwise

import pytest

from inference.recording.stage_timings import STAGES, compute_stage_timings
from tests.fakes.clock import FakeClock
from tests.fakes.request_traces import make_ended_trace


def test_a_complete_completion_has_nine_adjacent_stages() -> None:
    trace = make_ended_trace()

    # The monotonic time of a FakeClock begins at 1,000 s.
    timings = compute_stage_timings(trace, recorded_s=1_000 + trace.total_ms / 1000)

    assert tuple(timing.stage for timing in timings) == STAGES
    # This is the time at which the request arrived. `trace.received_s` is the end of the stage.
    assert timings[0].began_s == trace.arrival.received_s
    assert all(timing.ended_s == next_timing.began_s for timing, next_timing in pairwise(timings))
    assert all(timing.is_whole for timing in timings)


@pytest.mark.parametrize("until", STAGES[:7])  # the stages up to filter
def test_a_completion_that_ended_early_has_a_partial_last_stage(until: str) -> None:
    trace = make_ended_trace(until=until)

    *complete_timings, last, record = compute_stage_timings(trace, recorded_s=1_000.5)

    assert (last.stage, last.is_whole) == (until, False)
    assert last.ended_s == record.began_s == trace.closed_s
    assert [timing.stage for timing in complete_timings] == list(STAGES[: STAGES.index(until)])


def test_each_stage_has_its_own_duration() -> None:
    took_s = {stage: 0.001 * (2**number) for number, stage in enumerate(STAGES[:8])}
    clock = FakeClock()
    trace = make_ended_trace(clock, took_s=took_s)
    clock.pass_s(0.5)

    timings = compute_stage_timings(trace, recorded_s=clock.monotonic_s())

    durations_s = {timing.stage: timing.ended_s - timing.began_s for timing in timings}
    assert durations_s == pytest.approx(took_s | {"record": 0.5})

"""Log events of slow completions."""

from typing import Any

import pytest
import structlog

from caret.contracts.policy import Mode
from inference.completion.request_trace import RequestTrace
from inference.recording.slowest_requests import MAX_LINES, PERIOD_S, SlowLog
from tests.fakes.clock import FakeClock
from tests.fakes.request_traces import make_ended_trace
from tests.fakes.requests import make_request


def make_completed(mode: Mode = Mode.INLINE, *, first_s: float = 0.2) -> RequestTrace:
    """Return the trace of a completion whose first text was sent after `first_s`."""
    # The six other stages before the first token take a millisecond each.
    trace = make_ended_trace(took_s={"generate": first_s - 0.006})
    trace.request = make_request(mode=mode, prefix="hunter2", path="hunter2.py")
    return trace


def lines_of(log: SlowLog, *traces: RequestTrace) -> list[Any]:
    with structlog.testing.capture_logs() as lines:
        for trace in traces:
            log.on_completed(trace)
    return lines


def test_a_slow_completion_is_logged_with_its_id_and_timings() -> None:
    trace = make_completed()

    (line,) = lines_of(SlowLog(trace.clock), trace)

    assert line["event"] == "completion.slow"
    assert line["log_level"] == "info"
    assert line["request_id"] == trace.arrival.request_id
    assert (line["first_token_ms"], line["target_ms"]) == (200, 100)
    assert line["stages_ms"]["generate"] == 194
    assert "hunter2" not in repr(line)


@pytest.mark.parametrize(
    ("mode", "first_s", "is_slow"),
    # The targets are 0.1 s (inline), 0.15 s (fim), 0.5 s (block) and 2 s (chat).
    [
        (Mode.INLINE, 0.1, False),
        (Mode.INLINE, 0.101, True),
        (Mode.FIM, 0.14, False),
        (Mode.BLOCK, 0.4, False),
        (Mode.CHAT, 1.9, False),
        (Mode.CHAT, 2.1, True),
    ],
)
def test_each_mode_has_its_target(mode: Mode, first_s: float, is_slow: bool) -> None:
    lines = lines_of(SlowLog(FakeClock()), make_completed(mode, first_s=first_s))

    assert bool(lines) is is_slow


def test_completions_without_text_and_warm_ups_are_not_slow() -> None:
    warm_up = make_completed()
    warm_up.request = make_request(is_warm_up=True)
    without_text = make_ended_trace(until="generate", took_s={"generate": 9.0})

    assert lines_of(SlowLog(FakeClock()), warm_up, without_text) == []


def test_the_number_of_lines_is_limited_and_withheld_lines_are_counted() -> None:
    clock = FakeClock()
    log = SlowLog(clock)

    assert len(lines_of(log, *(make_completed() for _ in range(MAX_LINES + 5)))) == MAX_LINES
    clock.pass_s(PERIOD_S)

    (line,) = lines_of(log, make_completed())
    assert line["num_withheld"] == 5

"""Traces of completions that have ended, with a millisecond in each stage by default."""

from typing import Any, Final

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_request, make_trace
from tests.fakes.tenants import make_principal

# The field of the trace that has the end of each stage. The stage generate ends with the engine's
# first token, and filter with the first text that is sent; the time after that is the stage stream.
# (`trace.arrival.received_s` is another time: the beginning of the stage receive.)
_MARKS: Final = {
    "receive": "received_s",
    "authenticate": "authenticated_s",
    "admit": "admitted_s",
    "assemble": "assembled_s",
    "route": "routed_s",
    "generate": "engine_first_token_s",
    "filter": "first_sent_s",
}


def make_ended_trace(
    clock: FakeClock | None = None,
    *,
    until: str = "stream",
    took_s: dict[str, float] | None = None,
    finish_reason: FinishReason = FinishReason.STOP,
    **fields: Any,
) -> RequestTrace:
    """Return a trace that ended in the stage `until`.

    `took_s` has durations by stage. `fields` replace fields of the trace at its end.
    """
    clock = clock or FakeClock()
    trace = make_trace(clock)
    trace.request, trace.principal = make_request(), make_principal()
    trace.pool, trace.replica = "fast", "engine-1:8000"
    for stage, mark in _MARKS.items():
        clock.pass_s((took_s or {}).get(stage, 0.001))
        if stage == until:
            break
        setattr(trace, mark, clock.monotonic_s())
        if stage == "route":
            trace.mark_engine_called()
    else:  # the trace has not ended in one of these stages
        clock.pass_s((took_s or {}).get("stream", 0.001))
    for name, value in fields.items():
        setattr(trace, name, value)
    trace.finish(finish_reason)
    return trace

"""The CPU time in microseconds that each observer takes when a completion ends.

An observer updates metrics, the log of slow requests or a trace.

    python -m tests.benchmarks.observer_cost
"""

import sys
import time
from collections.abc import Callable
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from caret.foundation.clock import SystemClock
from inference.completion.request_trace import RequestTrace
from inference.recording.metrics.completion_metrics import CompletionMetrics
from inference.recording.otel_spans import SpanRecorder
from inference.recording.slowest_requests import SlowLog
from tests.benchmarks.results import Report
from tests.fakes.request_traces import make_ended_trace

MAX_US: Final = 20.0
_NUM_ROUNDS: Final = 7
_NUM_REQUESTS: Final = 5_000


def main() -> int:
    report = Report("observers")
    trace = make_ended_trace(prompt_tokens=1_900, cached_tokens=1_800, generated_tokens=20)
    trace.clock = SystemClock()
    for name, observer in (
        ("metrics", CompletionMetrics()),
        ("metrics_with_tenants", CompletionMetrics(num_tenants=20)),
        ("slow", SlowLog(SystemClock())),
        ("traces_not_sampled", _traces(0.0)),
    ):
        report.target(name, _cost_us(observer.on_completed, trace), "us", at_most=MAX_US)
    # No target: by default only one completion in ten is sampled. Another thread exports the spans.
    report.figure("traces_sampled", _cost_us(_traces(1.0).on_completed, trace), "us")
    return report.exit_status


def _traces(share: float) -> SpanRecorder:
    return SpanRecorder(ParentBased(TraceIdRatioBased(share)), Resource({}), SpanProcessor())


def _cost_us(observe_end: Callable[[RequestTrace], None], trace: RequestTrace) -> float:
    """Return the minimum of several rounds, which other work of the machine affects least."""
    return min(_round_us(observe_end, trace) for _ in range(_NUM_ROUNDS))


def _round_us(observe_end: Callable[[RequestTrace], None], trace: RequestTrace) -> float:
    began_s = time.process_time()
    for _ in range(_NUM_REQUESTS):
        observe_end(trace)
    return (time.process_time() - began_s) / _NUM_REQUESTS * 1e6


if __name__ == "__main__":
    sys.exit(main())

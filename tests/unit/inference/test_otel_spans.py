"""OpenTelemetry spans of completions."""

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import StatusCode

from caret.contracts.usage import FinishReason
from caret.foundation.ids import new_request_id
from inference.completion.request_trace import RequestTrace
from inference.recording.otel_spans import SpanRecorder, parse_trace_parent
from inference.recording.stage_timings import STAGES
from tests.fakes.request_traces import make_ended_trace
from tests.fakes.requests import make_arrival, make_request

# A `traceparent` header: version, trace ID, span ID, and flags (01: sampled).
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def spans_of(
    trace: RequestTrace, *, share: float = 1.0, trusts_clients: bool = False
) -> list[ReadableSpan]:
    """Return the spans of a completion. `share` is the share of traces that are sampled."""
    exporter = InMemorySpanExporter()
    sampler = ParentBased(root=TraceIdRatioBased(share))
    processor = SimpleSpanProcessor(exporter)
    SpanRecorder(sampler, Resource({}), processor, trusts_clients=trusts_clients).on_completed(
        trace
    )
    return list(exporter.get_finished_spans())


def find_span(spans: list[ReadableSpan], name: str) -> ReadableSpan:
    (span,) = (span for span in spans if span.name == name)
    return span


def test_a_completion_has_a_span_for_each_of_nine_stages() -> None:
    spans = spans_of(make_ended_trace())

    completion_span = find_span(spans, "completion")
    assert [span.name for span in spans] == [*STAGES, "completion"]
    assert all(
        span.parent == completion_span.context for span in spans if span is not completion_span
    )
    assert len({span.context.span_id for span in spans if span.context}) == 9 + 1


def test_the_trace_id_is_the_request_id() -> None:
    trace = make_ended_trace()

    span = find_span(spans_of(trace), "completion")

    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == trace.arrival.request_id.replace("-", "")


def test_spans_have_the_times_of_the_stages() -> None:
    trace = make_ended_trace(took_s={"generate": 0.25})
    began_ns = trace.arrival.occurred_at_ms * 1_000_000

    span = find_span(spans_of(trace), "generate")

    # Each of the five stages before it takes a millisecond.
    assert span.start_time == began_ns + 5_000_000
    assert span.end_time == began_ns + 255_000_000


def test_spans_contain_ids_and_counts() -> None:
    trace = make_ended_trace(prompt_tokens=100, cached_tokens=90, finish_reason=FinishReason.LENGTH)

    attributes = find_span(spans_of(trace), "completion").attributes or {}

    assert attributes["caret.request_id"] == trace.arrival.request_id
    assert attributes["caret.finish_reason"] == "length"
    assert (attributes["caret.prompt_tokens"], attributes["caret.cached_tokens"]) == (100, 90)
    assert "caret.error_code" not in attributes


def test_an_error_code_is_the_status_of_the_span() -> None:
    trace = make_ended_trace(
        until="generate", finish_reason=FinishReason.ERROR, error_code="engine_disconnected"
    )

    spans = spans_of(trace)

    status = find_span(spans, "completion").status
    assert (status.status_code, status.description) == (StatusCode.ERROR, "engine_disconnected")
    assert find_span(spans, "generate").attributes == {"caret.is_interrupted": True}


def test_spans_contain_no_text() -> None:
    trace = make_ended_trace()
    trace.request = make_request(prefix="hunter2", suffix="hunter2", path="hunter2.py")

    assert "hunter2" not in "".join(span.to_json() for span in spans_of(trace))


def test_the_trace_of_a_client_is_continued() -> None:
    trace = make_ended_trace()
    trace.arrival = make_arrival(trace_parent=PARENT)

    span = find_span(spans_of(trace), "completion")

    assert span.context is not None
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"


@pytest.mark.parametrize(("share", "is_traced"), [(0.0, False), (1.0, True)])
@pytest.mark.parametrize("flag", ["00", "01"])
def test_a_client_does_not_decide_about_sampling(flag: str, share: float, is_traced: bool) -> None:
    trace = make_ended_trace()
    trace.arrival = make_arrival(trace_parent=PARENT[:-2] + flag)

    assert bool(spans_of(trace, share=share)) is is_traced


@pytest.mark.parametrize(("flag", "is_traced"), [("00", False), ("01", True)])
def test_a_trusted_client_decides_about_sampling(flag: str, is_traced: bool) -> None:
    trace = make_ended_trace()
    trace.arrival = make_arrival(trace_parent=PARENT[:-2] + flag)

    spans = spans_of(trace, share=0.0 if is_traced else 1.0, trusts_clients=True)

    assert bool(spans) is is_traced


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "hunter2",
        PARENT.upper(),
        PARENT + "-more",
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
    ],
)
def test_an_invalid_trace_parent_is_ignored(header: str | None) -> None:
    assert parse_trace_parent(header) is None


def test_the_share_of_sampled_traces_is_as_configured() -> None:
    """The trace ID is the request ID, in which two of the bits that samplers use are constant."""
    trace, sampled = make_ended_trace(), 0

    for _ in range(2_000):
        trace.arrival = make_arrival(request_id=new_request_id())
        sampled += bool(spans_of(trace, share=0.25))

    assert 400 < sampled < 600  # 500 on average

"""OpenTelemetry spans of a completion's stages, made after it has ended.

The spans contain IDs, counts and times, never text, paths or keys. The trace ID is the request ID
(without hyphens), unless the client's own trace is continued. The exporter runs in a separate
thread, with a bounded queue.
"""

import random
import re
from typing import Final
from uuid import UUID

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from inference.recording.stage_timings import StageTiming, compute_stage_timings

_SCOPE: Final = InstrumentationScope("caret.gateway")
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_LOW_64_BITS: Final = 2**64 - 1
# https://www.w3.org/TR/trace-context/#traceparent-header; other values are ignored.
_TRACE_PARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NO_ERROR: Final = Status(StatusCode.UNSET)
Attributes = dict[str, str | int]


class SpanRecorder:
    """A CompletionObserver that makes a span of each completion, and one of each stage."""

    def __init__(
        self,
        sampler: Sampler,
        resource: Resource,
        processor: SpanProcessor,
        *,
        trusts_clients: bool = False,
    ) -> None:
        """`trusts_clients`: the sampler sees whether the client's trace is sampled.

        A parent-based sampler then follows the client's decision. If the client has a trace, the
        spans always belong to this trace, even without `trusts_clients`.
        """
        self._trusts_clients = trusts_clients
        self._sampler = sampler
        self._resource = resource
        self._processor = processor

    def on_completed(self, trace: RequestTrace) -> None:
        request_id = UUID(trace.arrival.request_id).int
        parent = parse_trace_parent(trace.arrival.trace_parent)
        if not self._is_sampled(request_id, parent):
            return
        recorded_s = trace.clock.monotonic_s()
        wall = _WallClock(trace)
        completion_context = _make_span_context(parent.trace_id if parent else request_id)
        for timing in compute_stage_timings(trace, recorded_s=recorded_s):
            self._processor.on_end(self._make_stage_span(timing, completion_context, wall))
        self._processor.on_end(
            ReadableSpan(
                "completion",
                context=completion_context,
                parent=parent,
                resource=self._resource,
                attributes=_collect_attributes(trace),
                kind=SpanKind.SERVER,
                status=_to_status(trace),
                start_time=wall.to_unix_ns(trace.arrival.received_s),
                end_time=wall.to_unix_ns(recorded_s),
                instrumentation_scope=_SCOPE,
            )
        )

    def _make_stage_span(
        self, timing: StageTiming, completion_context: SpanContext, wall: "_WallClock"
    ) -> ReadableSpan:
        return ReadableSpan(
            timing.stage,
            context=_make_span_context(completion_context.trace_id),
            parent=completion_context,
            resource=self._resource,
            attributes={} if timing.is_whole else {"caret.is_interrupted": True},
            status=_NO_ERROR,
            start_time=wall.to_unix_ns(timing.began_s),
            end_time=wall.to_unix_ns(timing.ended_s),
            instrumentation_scope=_SCOPE,
        )

    def _is_sampled(self, request_id: int, parent: SpanContext | None) -> bool:
        context = Context()
        if parent is not None and self._trusts_clients:
            context = set_span_in_context(NonRecordingSpan(parent))
        # Samplers use the low 64 bits as random. In a UUID, the highest two of them are constant:
        # shift them out.
        random_id = (request_id << 2) & _LOW_64_BITS
        decision = self._sampler.should_sample(context, random_id, "completion").decision
        return decision is Decision.RECORD_AND_SAMPLE


class _WallClock:
    """Converts monotonic seconds to Unix nanoseconds: the arrival's time is known in both."""

    def __init__(self, trace: RequestTrace) -> None:
        self._received_s = trace.arrival.received_s
        self._occurred_at_ns = trace.arrival.occurred_at_ms * 1_000_000

    def to_unix_ns(self, moment_s: float) -> int:
        return self._occurred_at_ns + round((moment_s - self._received_s) * 1e9)


def parse_trace_parent(header: str | None) -> SpanContext | None:
    """Return the client's span; None if the header is missing or invalid."""
    match = _TRACE_PARENT.fullmatch(header or "")
    if match is None:
        return None
    trace_id, span_id, flags = (int(group, 16) for group in match.groups())
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return context if context.is_valid else None


def _make_span_context(trace_id: int) -> SpanContext:
    span_id = random.getrandbits(64) or 1  # 0 is not a valid ID
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)


def _collect_attributes(trace: RequestTrace) -> Attributes:
    attributes: Attributes = {
        "caret.request_id": trace.arrival.request_id,
        "caret.protocol": trace.arrival.protocol,
        "caret.finish_reason": (trace.finish_reason or FinishReason.CANCELLED).value,
        "caret.pool": trace.pool,
        "caret.replica": trace.replica,
        "caret.prompt_tokens": trace.prompt_tokens,
        "caret.generated_tokens": trace.generated_tokens,
        "caret.error_code": trace.error_code,
        "caret.filter_reason": trace.filter_reason,
    }
    if trace.request is not None:
        attributes["caret.mode"] = trace.request.mode.value
    if trace.principal is not None:
        attributes["caret.tenant_id"] = trace.principal.snapshot.tenant_id
    if trace.cached_tokens is not None:
        attributes["caret.cached_tokens"] = trace.cached_tokens
    if trace.num_in_flight_at_replica is not None:
        attributes["caret.num_in_flight_at_replica"] = trace.num_in_flight_at_replica
    return {name: value for name, value in attributes.items() if value != ""}


def _to_status(trace: RequestTrace) -> Status:
    if trace.finish_reason is not FinishReason.ERROR:
        return _NO_ERROR
    return Status(StatusCode.ERROR, trace.error_code)

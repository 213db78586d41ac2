"""The record stage: one usage record for each completion whose key and request are valid."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from caret.contracts.usage import CompletionRecord, FinishReason, UsageRecord
from caret.foundation.clock import Clock
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request import CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionError


class Journal(Protocol):
    def append(self, record: UsageRecord) -> None:
        """Store the record until it is delivered, even if this process ends before."""


class CompletionObserver(Protocol):
    def on_completed(self, trace: RequestTrace) -> None:
        """Called when a completion has ended. Must take only microseconds."""


class CompletionListener(CompletionObserver, Protocol):
    def on_started(self, trace: RequestTrace) -> None:
        """Called when a completion has begun. Its trace may be read until the completion ends."""


@dataclass(frozen=True, slots=True)
class Recorder:
    journal: Journal
    clock: Clock
    observers: tuple[CompletionObserver, ...] = ()  # metrics, slow log, spans, content capture
    listeners: tuple[CompletionListener, ...] = ()  # speculation
    models: Mapping[str, str] = field(default_factory=dict)  # each pool's model, by pool name


@contextmanager
def record(recorder: Recorder, arrival: IncomingRequest) -> Iterator[RequestTrace]:
    """Open the request trace of a completion. On exit, close it and write its usage record.

    A request with an invalid key or an invalid body has no usage record.
    """
    trace = RequestTrace(arrival=arrival, clock=recorder.clock)
    for listener in recorder.listeners:
        listener.on_started(trace)
    try:
        yield trace
    except Exception:
        trace.fail(CompletionError("internal_error", ""))
        raise
    finally:
        trace.finish(FinishReason.CANCELLED)  # no effect if the completion has ended already
        try:
            if trace.principal is not None and trace.request is not None:
                model = recorder.models.get(trace.pool, "")
                recorder.journal.append(
                    _build_record(trace, trace.principal, trace.request, model=model)
                )
        finally:
            _notify_observers(recorder, trace)


def _notify_observers(recorder: Recorder, trace: RequestTrace) -> None:
    """Notify the listeners first, so that an error of an observer cannot prevent it.

    Until a listener is notified, it keeps the request trace and its text in memory.
    """
    for observer in (*recorder.listeners, *recorder.observers):
        observer.on_completed(trace)


def _build_record(
    trace: RequestTrace, principal: Principal, request: CompletionRequest, *, model: str
) -> CompletionRecord:
    return CompletionRecord(
        request_id=trace.arrival.request_id,
        tenant_id=principal.snapshot.tenant_id,
        user_id=principal.credential.user_id,
        key_id=principal.credential.key_id,
        occurred_at_ms=trace.arrival.occurred_at_ms,
        protocol=trace.arrival.protocol,
        mode=request.mode,
        language=request.language,
        tier=request.tier,
        pool=trace.pool,
        replica=trace.replica,
        finish_reason=trace.finish_reason or FinishReason.CANCELLED,
        error_code=trace.error_code,
        prompt_tokens=trace.prompt_tokens,
        cached_tokens=trace.cached_tokens,
        generated_tokens=trace.generated_tokens,
        assemble_ms=trace.elapsed_ms(trace.assembled_s),
        first_token_ms=trace.first_token_ms,
        engine_ms=trace.engine_ms,
        total_ms=trace.total_ms,
        trigger=request.trigger,
        variant=trace.admitted.variant.name if trace.admitted else "",
        filter_reason=trace.filter_reason,
        num_files=trace.num_files,
        num_snippets=trace.num_snippets,
        authenticated_ms=trace.elapsed_ms(trace.authenticated_s),
        admitted_ms=trace.elapsed_ms(trace.admitted_s),
        routed_ms=trace.elapsed_ms(trace.routed_s),
        num_in_flight_at_replica=trace.num_in_flight_at_replica,
        editor=trace.arrival.editor,
        num_chars=trace.num_sent_chars,
        num_lines=trace.num_sent_lines,
        is_syntax_checked=trace.is_syntax_checked,
        model=model,
    )

"""The record stage: exactly one usage record per completion, however it ends."""

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
        """Store the record until it is delivered, beyond the end of the process."""


class CompletionObserver(Protocol):
    def on_completed(self, account: RequestTrace) -> None:
        """Note that a completion has ended. Must take only microseconds."""


class CompletionListener(CompletionObserver, Protocol):
    def on_started(self, account: RequestTrace) -> None:
        """Note that a completion has begun. Its trace may be read until it ends."""


@dataclass(frozen=True, slots=True)
class Recorder:
    journal: Journal
    clock: Clock
    observers: tuple[CompletionObserver, ...] = ()  # load, metrics, spans
    followers: tuple[CompletionListener, ...] = ()  # speculation
    models: Mapping[str, str] = field(default_factory=dict)  # by the pool's name


@contextmanager
def record(recorder: Recorder, arrival: IncomingRequest) -> Iterator[RequestTrace]:
    """Open the request trace of a completion. On exit, close it and write its usage record.

    Requests without a valid key or a valid body leave no record.
    """
    account = RequestTrace(arrival=arrival, clock=recorder.clock)
    for follower in recorder.followers:
        follower.on_started(account)
    try:
        yield account
    except Exception:
        account.fail(CompletionError("internal_error", ""))
        raise
    finally:
        account.finish(FinishReason.CANCELLED)
        try:
            if account.principal is not None and account.request is not None:
                model = recorder.models.get(account.pool, "")
                recorder.journal.append(
                    _record_of(account, account.principal, account.request, model=model)
                )
        finally:
            _notify_observers(recorder, account)


def _notify_observers(recorder: Recorder, account: RequestTrace) -> None:
    """Notify the listeners first: they hold the request trace, and its text, until then."""
    for observer in (*recorder.followers, *recorder.observers):
        observer.on_completed(account)


def _record_of(
    account: RequestTrace, principal: Principal, request: CompletionRequest, *, model: str
) -> CompletionRecord:
    return CompletionRecord(
        request_id=account.arrival.request_id,
        tenant_id=principal.snapshot.tenant_id,
        user_id=principal.credential.user_id,
        key_id=principal.credential.key_id,
        occurred_at_ms=account.arrival.occurred_at_ms,
        protocol=account.arrival.protocol,
        mode=request.mode,
        language=request.language,
        tier=request.tier,
        pool=account.pool,
        replica=account.replica,
        finish_reason=account.finish_reason or FinishReason.CANCELLED,
        error_code=account.error_code,
        prompt_tokens=account.prompt_tokens,
        cached_tokens=account.cached_tokens,
        generated_tokens=account.generated_tokens,
        assemble_ms=account.elapsed_ms(account.assembled_s),
        first_token_ms=account.first_token_ms,
        engine_ms=account.engine_ms,
        total_ms=account.total_ms,
        trigger=request.trigger,
        variant=account.admitted.variant.name if account.admitted else "",
        filter_reason=account.filter_reason,
        num_files=account.num_files,
        num_snippets=account.num_snippets,
        authenticated_ms=account.elapsed_ms(account.authenticated_s),
        admitted_ms=account.elapsed_ms(account.admitted_s),
        routed_ms=account.elapsed_ms(account.routed_s),
        num_in_flight_at_replica=account.num_in_flight_at_replica,
        editor=account.arrival.editor,
        num_chars=account.num_sent_chars,
        num_lines=account.num_sent_lines,
        is_parsed=account.is_syntax_checked,
        model=model,
    )

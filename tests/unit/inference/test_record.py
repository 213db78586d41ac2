"""record and the request trace: each completion leaves exactly one record, however it ends."""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from caret.contracts.policy import Tier
from caret.contracts.usage import CompletionRecord, FinishReason, UsageRecord
from inference.completion.request_trace import RequestTrace
from inference.context.prompt.prompt import Prompt
from inference.errors import EngineError
from inference.recording.record import Recorder, record
from tests.fakes.clock import FakeClock
from tests.fakes.journal import FakeJournal
from tests.fakes.pools import make_engine_request
from tests.fakes.requests import make_admitted, make_arrival, make_request, make_trace
from tests.fakes.tenants import ACME, ADA, make_principal


def _identify(trace: RequestTrace) -> None:
    """Let the trace have a user and a valid request: without both, there is no record."""
    trace.principal, trace.request = make_principal(), make_request()


def _record_completion(
    *, error: BaseException | None = None, finish_reason: FinishReason | None = None
) -> FakeJournal:
    """Record a completion that ends with `error` or `finish_reason`, and return the journal."""
    journal, clock = FakeJournal(), FakeClock()
    error_check: AbstractContextManager[Any] = (
        nullcontext() if error is None else pytest.raises(type(error))
    )
    with error_check, record(Recorder(journal, clock), make_arrival(clock=clock)) as trace:
        _identify(trace)
        if finish_reason is not None:
            trace.finish(finish_reason)
        if error is not None:
            raise error
    return journal


@pytest.mark.parametrize("finish_reason", list(FinishReason))
def test_a_completion_leaves_one_record_with_its_finish_reason(finish_reason: FinishReason) -> None:
    journal = _record_completion(finish_reason=finish_reason)

    assert [record.finish_reason for record in journal.completions] == [finish_reason]


@pytest.mark.parametrize(
    ("error", "finish_reason", "code"),
    [
        (None, FinishReason.CANCELLED, ""),
        (asyncio.CancelledError(), FinishReason.CANCELLED, ""),
        (GeneratorExit(), FinishReason.CANCELLED, ""),
        (ValueError("customer's code"), FinishReason.ERROR, "internal_error"),
    ],
)
def test_a_completion_that_sets_no_finish_reason_leaves_one_record(
    error: BaseException | None, finish_reason: FinishReason, code: str
) -> None:
    journal = _record_completion(error=error)

    assert [(record.finish_reason, record.error_code) for record in journal.completions] == [
        (finish_reason, code)
    ]


def test_an_error_after_the_end_does_not_change_the_record() -> None:
    journal = _record_completion(finish_reason=FinishReason.STOP, error=ValueError())

    (record_,) = journal.completions
    assert (record_.finish_reason, record_.error_code) == (FinishReason.STOP, "")


class _FullJournal:
    def append(self, record: UsageRecord) -> None:
        raise OverflowError("planted")


class _Listener:
    def __init__(self) -> None:
        self.traces: list[RequestTrace] = []

    def on_started(self, trace: RequestTrace) -> None:
        self.traces.append(trace)

    def on_completed(self, trace: RequestTrace) -> None:
        self.traces.remove(trace)


def test_a_completion_that_cannot_be_journalled_is_removed_from_listeners() -> None:
    clock, listener = FakeClock(), _Listener()
    recorder = Recorder(_FullJournal(), clock, listeners=(listener,))

    with (
        pytest.raises(OverflowError, match="planted"),
        record(recorder, make_arrival(clock=clock)) as trace,
    ):
        _identify(trace)

    assert listener.traces == []


def test_an_internal_error_is_raised() -> None:
    clock = FakeClock()

    with (
        pytest.raises(ValueError, match="planted"),
        record(Recorder(FakeJournal(), clock), make_arrival()),
    ):
        raise ValueError("planted")


def test_an_unauthenticated_request_leaves_no_record() -> None:
    journal = FakeJournal()

    with record(Recorder(journal, FakeClock()), make_arrival()) as trace:
        trace.request = make_request()

    assert journal.records == []


def test_an_invalid_request_leaves_no_record() -> None:
    journal = FakeJournal()

    with record(Recorder(journal, FakeClock()), make_arrival()) as trace:
        trace.principal = make_principal()

    assert journal.records == []


def test_a_record_contains_ids_timings_and_counts() -> None:
    journal, clock = FakeJournal(), FakeClock()
    arrival = replace(make_arrival(clock=clock), editor="zed")

    with record(Recorder(journal, clock, models={"demo": "qwen"}), arrival) as trace:
        _identify(trace)
        clock.pass_s(0.001)
        trace.mark_admitted(make_admitted(pool="demo"))
        trace.mark_assembled(Prompt(token_ids=[1] * 30, stop_token_ids=[], is_single_line=False))
        trace.mark_routed(make_engine_request("http://r:1"))
        trace.mark_engine_called()
        clock.pass_s(0.010)
        trace.record_chunk(generated_tokens=1, cached_tokens=None)
        clock.pass_s(0.001)
        trace.record_sent_text("a\nb", at_s=clock.monotonic_s())
        trace.is_syntax_checked = True
        clock.pass_s(0.020)
        trace.record_chunk(generated_tokens=5, cached_tokens=16)
        trace.finish(FinishReason.STOP)
        clock.pass_s(9)

    assert journal.records == [
        CompletionRecord(
            request_id=arrival.request_id,
            tenant_id=ACME,
            user_id=ADA,
            key_id=make_principal().credential.key_id,
            occurred_at_ms=arrival.occurred_at_ms,
            protocol="stream",
            mode=make_request().mode,
            language="python",
            tier=Tier.FAST,
            pool="demo",
            replica="r:1",
            finish_reason=FinishReason.STOP,
            error_code="",
            prompt_tokens=30,
            cached_tokens=16,
            generated_tokens=5,
            assemble_ms=1.0,
            first_token_ms=12.0,  # 1 + 10 + 1: until the text was sent
            engine_ms=10.0,  # until the first token of the engine
            total_ms=32.0,
            admitted_ms=1.0,
            routed_ms=1.0,
            num_in_flight_at_replica=0,
            editor="zed",
            model="qwen",
            num_chars=3,
            num_lines=2,
            is_syntax_checked=True,
        )
    ]


def test_a_record_never_contains_code() -> None:
    journal, secret = FakeJournal(), "hunter2"

    with record(Recorder(journal, FakeClock()), make_arrival(prefix=secret)) as trace:
        trace.principal = make_principal()
        trace.request = make_request(prefix=secret, suffix=secret, path=secret)
        trace.record_sent_text(secret, at_s=0.0)

    assert secret not in repr(journal.records)


def test_the_first_finish_reason_is_kept() -> None:
    trace = make_trace()

    trace.finish(FinishReason.LENGTH)
    trace.fail(EngineError("engine_disconnected", ""))
    trace.finish(FinishReason.CANCELLED)

    assert (trace.finish_reason, trace.error_code) == (FinishReason.LENGTH, "")


def test_the_total_time_ends_with_the_completion() -> None:
    clock = FakeClock()
    trace = make_trace(clock)
    clock.pass_s(1)
    trace.finish(FinishReason.STOP)

    clock.pass_s(5)
    trace.finish(FinishReason.STOP)

    assert trace.total_ms == 1000


def test_stages_that_were_not_reached_have_no_time() -> None:
    trace = make_trace()

    assert trace.first_token_ms is trace.engine_ms is trace.time_to_engine_ms is None


def test_a_chunk_without_tokens_is_not_the_first_token() -> None:
    trace = make_trace()

    trace.record_chunk(generated_tokens=0, cached_tokens=None)

    assert trace.engine_first_token_s is None


def test_reported_cached_tokens_are_kept() -> None:
    trace = make_trace()

    trace.record_chunk(generated_tokens=1, cached_tokens=16)
    trace.record_chunk(generated_tokens=2, cached_tokens=None)

    assert trace.cached_tokens == 16


def test_a_completion_without_a_finish_reason_is_cancelled() -> None:
    clock = FakeClock()

    with record(Recorder(FakeJournal(), clock), make_arrival(clock=clock)) as trace:
        clock.pass_s(1)
    clock.pass_s(1)

    assert (trace.finish_reason, trace.total_ms) == (FinishReason.CANCELLED, 1000)

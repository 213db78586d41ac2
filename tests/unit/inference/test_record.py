"""record and the request trace: exactly one record, however a completion ends."""

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
from tests.fakes.requests import make_account, make_admitted, make_arrival, make_request
from tests.fakes.tenants import ACME, ADA, make_principal


def _known(account: RequestTrace) -> None:
    account.principal, account.request = make_principal(), make_request()


def _recorded(
    *, ends: BaseException | None = None, finish: FinishReason | None = None
) -> FakeJournal:
    journal, clock = FakeJournal(), FakeClock()
    expected: AbstractContextManager[Any] = (
        nullcontext() if ends is None else pytest.raises(type(ends))
    )
    with expected, record(Recorder(journal, clock), make_arrival(clock=clock)) as account:
        _known(account)
        if finish is not None:
            account.finish(finish)
        if ends is not None:
            raise ends
    return journal


@pytest.mark.parametrize("finish", list(FinishReason))
def test_a_completion_leaves_one_record_of_its_finish(finish: FinishReason) -> None:
    journal = _recorded(finish=finish)

    assert [each.finish for each in journal.completions] == [finish]


@pytest.mark.parametrize(
    ("ends", "finish", "code"),
    [
        (None, FinishReason.CANCELLED, ""),
        (asyncio.CancelledError(), FinishReason.CANCELLED, ""),
        (GeneratorExit(), FinishReason.CANCELLED, ""),
        (ValueError("customer's code"), FinishReason.ERROR, "internal_error"),
    ],
)
def test_a_completion_leaves_one_record_however_it_is_left(
    ends: BaseException | None, finish: FinishReason, code: str
) -> None:
    journal = _recorded(ends=ends)

    assert [(each.finish, each.error_code) for each in journal.completions] == [(finish, code)]


def test_a_defect_after_the_end_changes_nothing_of_it() -> None:
    journal = _recorded(finish=FinishReason.STOP, ends=ValueError())

    (kept,) = journal.completions
    assert (kept.finish, kept.error_code) == (FinishReason.STOP, "")


class _FullJournal:
    def append(self, record: UsageRecord) -> None:
        raise OverflowError("planted")


class _Follower:
    def __init__(self) -> None:
        self.held: list[RequestTrace] = []

    def on_started(self, account: RequestTrace) -> None:
        self.held.append(account)

    def on_completed(self, account: RequestTrace) -> None:
        self.held.remove(account)


def test_nobody_keeps_the_account_of_a_completion_that_cannot_be_journalled() -> None:
    clock, follower = FakeClock(), _Follower()
    recorder = Recorder(_FullJournal(), clock, followers=(follower,))

    with (
        pytest.raises(OverflowError, match="planted"),
        record(recorder, make_arrival(clock=clock)) as account,
    ):
        _known(account)

    assert follower.held == []


def test_a_defect_goes_on() -> None:
    clock = FakeClock()

    with (
        pytest.raises(ValueError, match="planted"),
        record(Recorder(FakeJournal(), clock), make_arrival()),
    ):
        raise ValueError("planted")


def test_a_stranger_leaves_no_record() -> None:
    journal = FakeJournal()

    with record(Recorder(journal, FakeClock()), make_arrival()) as account:
        account.request = make_request()

    assert journal.records == []


def test_what_is_no_request_leaves_no_record() -> None:
    journal = FakeJournal()

    with record(Recorder(journal, FakeClock()), make_arrival()) as account:
        account.principal = make_principal()

    assert journal.records == []


def test_a_record_says_whose_it_is_and_what_it_cost() -> None:
    journal, clock = FakeJournal(), FakeClock()
    arrival = replace(make_arrival(clock=clock), editor="zed")

    with record(Recorder(journal, clock, models={"demo": "qwen"}), arrival) as account:
        _known(account)
        clock.pass_s(0.001)
        account.mark_admitted(make_admitted(pool="demo"))
        account.mark_assembled(Prompt(token_ids=[1] * 30, stop_token_ids=[], is_single_line=False))
        account.mark_routed(make_engine_request("http://r:1"))
        account.mark_engine_called()
        clock.pass_s(0.010)
        account.record_chunk(generated_tokens=1, cached_tokens=None)
        clock.pass_s(0.001)
        account.record_sent_text("a\nb", at_s=clock.monotonic_s())
        account.is_syntax_checked = True
        clock.pass_s(0.020)
        account.record_chunk(generated_tokens=5, cached_tokens=16)
        account.finish(FinishReason.STOP)
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
            finish=FinishReason.STOP,
            error_code="",
            prompt_tokens=30,
            cached_tokens=16,
            generated_tokens=5,
            assemble_ms=1.0,
            first_token_ms=12.0,
            engine_ms=10.0,
            total_ms=32.0,
            admitted_ms=1.0,
            routed_ms=1.0,
            num_in_flight_at_replica=0,
            editor="zed",
            model="qwen",
            num_chars=3,
            num_lines=2,
            is_parsed=True,
        )
    ]


def test_a_record_never_contains_code() -> None:
    journal, secret = FakeJournal(), "hunter2"

    with record(Recorder(journal, FakeClock()), make_arrival(prefix=secret)) as account:
        account.principal = make_principal()
        account.request = make_request(prefix=secret, suffix=secret, path=secret)
        account.record_sent_text(secret, at_s=0.0)

    assert secret not in repr(journal.records)


def test_the_first_ending_counts() -> None:
    account = make_account()

    account.finish(FinishReason.LENGTH)
    account.fail(EngineError("engine_disconnected", ""))
    account.finish(FinishReason.CANCELLED)

    assert (account.finish_reason, account.error_code) == (FinishReason.LENGTH, "")


def test_the_total_stands_still_after_the_end() -> None:
    clock = FakeClock()
    account = make_account(clock)
    clock.pass_s(1)
    account.finish(FinishReason.STOP)

    clock.pass_s(5)
    account.finish(FinishReason.STOP)

    assert account.total_ms == 1000


def test_what_was_not_reached_has_no_time() -> None:
    account = make_account()

    assert account.first_token_ms is account.engine_ms is account.time_to_engine_ms is None


def test_an_engine_that_only_reports_has_not_begun() -> None:
    account = make_account()

    account.record_chunk(generated_tokens=0, cached_tokens=None)

    assert account.engine_first_token_s is None


def test_cached_tokens_once_told_are_kept() -> None:
    account = make_account()

    account.record_chunk(generated_tokens=1, cached_tokens=16)
    account.record_chunk(generated_tokens=2, cached_tokens=None)

    assert account.cached_tokens == 16


def test_a_completion_that_was_just_left_is_closed() -> None:
    clock = FakeClock()

    with record(Recorder(FakeJournal(), clock), make_arrival(clock=clock)) as account:
        clock.pass_s(1)
    clock.pass_s(1)

    assert (account.finish_reason, account.total_ms) == (FinishReason.CANCELLED, 1000)

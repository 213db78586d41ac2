"""Entries reach a real webhook at least once, in order, and again after failures."""

import json
from datetime import timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect
from tenants.base.redis_lock import redis_lock
from tenants.compliance.audit_sinks import delivery_worker
from tenants.compliance.audit_sinks.delivery_worker import (
    MAX_MESSAGES,
    DeliveryResult,
    _claim_due,
    _claim_sink,
    _store_result,
    deliver_due,
)
from tenants.compliance.audit_sinks.operations import NewSink, create_sink, delete_sink, replay_sink
from tenants.compliance.tasks import deliver_audit_entries
from tenants.models import AuditSink
from tenants.security.audit.hash_chain import hash_document
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.operations import seal_for
from tests.fakes.siem_servers import Hook, Syslog, webhook
from tests.fixtures.companies import ACME, Company, make_company
from tests.integration.siem.clock import Clock
from tests.integration.siem.sink_fixtures import add, attach, attach_syslog, state


def test_a_webhook_gets_every_entry_signed_and_in_order(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach(company, hook)
    add(company, 3)

    deliver_due(clock=clock)

    assert hook.sequences == list(range(1, 11))
    assert [payload["data"]["hash"] for payload in hook.got] == [
        hash_document(payload["data"]).hex() for payload in hook.got
    ]
    assert (state(company).delivered_sequence, state(company).num_waiting) == (10, 0)
    assert state(company).delivered_at == clock.now


def test_a_receivers_library_verifies_what_it_gets(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach(company, hook)

    deliver_due(clock=clock)

    assert hook.last is not None
    body, headers = hook.last
    assert Webhook(hook.secret).verify(body, dict(headers))["data"]["sequence"] == 7
    with pytest.raises(WebhookVerificationError):
        Webhook(hook.secret).verify(body.replace(b"7", b"8"), dict(headers))


def test_a_sink_that_has_all_is_left_alone(company: Company, hook: Hook, clock: Clock) -> None:
    attach(company, hook)
    deliver_due(clock=clock)
    asked = hook.num_asked

    assert deliver_due(clock=clock) == 0
    assert hook.num_asked == asked


def test_a_new_sink_gets_what_comes_from_now_on(company: Company, hook: Hook, clock: Clock) -> None:
    attach(company, hook, from_sequence=None)
    add(company)

    deliver_due(clock=clock)

    assert [payload["data"]["action"] for payload in hook.got] == [
        "audit_sink.created",
        "test.done",
    ]


def test_more_than_one_visit_takes_come_one_visit_after_the_other(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach(company, hook)
    add(company, 2 * MAX_MESSAGES)

    while deliver_due(clock=clock):
        clock.turn(seconds=30)

    assert hook.sequences == list(range(1, 2 * MAX_MESSAGES + 8))


def test_who_is_far_behind_is_caught_up_with_in_one_run(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    attach_syslog(company, syslog)
    add(company, 2 * MAX_MESSAGES)

    assert deliver_due(clock=clock) == 2 * MAX_MESSAGES + 7
    assert syslog.sequences == list(range(1, 2 * MAX_MESSAGES + 8))


def test_what_another_worker_has_delivered_meanwhile_is_no_visit(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    attach_syslog(company, syslog)
    with tenant_scope(company.tenant_id):
        sink = AuditSink.objects.get()
        AuditSink.objects.update(delivered_sequence=7)

        assert _claim_sink(company.tenant_id, sink, clock()) is None
        assert AuditSink.objects.get().claimed_until is None


@pytest.mark.parametrize("status", [302, 400, 410, 500])
def test_what_was_refused_is_shown_and_sent_again_later(
    company: Company, hook: Hook, clock: Clock, status: int
) -> None:
    attach(company, hook)
    hook.statuses = [204, 204, status]

    deliver_due(clock=clock)

    failed = state(company)
    assert hook.sequences == [1, 2]
    assert failed.last_error == f"The receiver responded with status {status}."
    assert (failed.failed_since, failed.num_failures) == (clock.now, 1)
    assert failed.next_attempt_at == clock.now + timedelta(seconds=5)
    deliver_due(clock=clock)
    assert hook.num_asked == 3

    clock.turn(seconds=6)
    deliver_due(clock=clock)

    assert hook.sequences == list(range(1, 8))
    assert (state(company).failed_since, state(company).last_error) == (None, "")


def test_a_sink_that_goes_on_failing_says_since_when_and_is_asked_less_and_less(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach(company, hook)
    hook.statuses = [500] * 3
    began = clock.now
    waits = []
    for _ in range(3):
        deliver_due(clock=clock)
        next_attempt = state(company).next_attempt_at
        assert next_attempt is not None
        waits.append((next_attempt - clock.now).total_seconds())
        clock.now = next_attempt

    assert waits == [5, 10, 20]
    assert (state(company).failed_since, state(company).num_failures) == (began, 3)


def test_a_clock_that_was_set_back_keeps_no_sink_waiting(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach(company, hook)
    hook.statuses = [500]
    deliver_due(clock=clock)

    clock.turn(days=-400)
    deliver_due(clock=clock)

    assert hook.sequences == list(range(1, 8))


def test_what_was_delivered_but_not_noted_is_delivered_again_under_its_id(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach(company, hook)
    deliver_due(clock=clock)
    with tenant_scope(company.tenant_id):
        AuditSink.objects.update(delivered_sequence=5)  # as if the worker had been killed

    deliver_due(clock=clock)

    assert hook.sequences == [1, 2, 3, 4, 5, 6, 7, 6, 7]
    assert hook.ids[5:7] == hook.ids[7:9]


def test_a_claimed_sink_is_left_to_its_worker_until_that_was_killed(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach(company, hook)
    assert len(list(_claim_due(company.tenant_id, clock()))) == 1

    deliver_due(clock=clock)
    assert hook.got == []

    clock.turn(seconds=61)
    deliver_due(clock=clock)
    assert len(hook.got) == 7


def test_of_two_workers_one_gets_a_sink(company: Company, hook: Hook, clock: Clock) -> None:
    attach(company, hook)
    with tenant_scope(company.tenant_id):
        sink = AuditSink.objects.get()
        first = _claim_sink(company.tenant_id, sink, clock())
        second = _claim_sink(company.tenant_id, sink, clock())

    assert first is not None
    assert second is None


def test_a_replay_sends_everything_from_there_on_again(
    company: Company, hook: Hook, clock: Clock
) -> None:
    sink = attach(company, hook)
    deliver_due(clock=clock)

    replay_sink(actor=company.administrator.actor, sink_id=sink.id, from_sequence=3, now=clock())
    deliver_due(clock=clock)

    assert hook.sequences == [1, 2, 3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 8]


def test_a_replay_during_a_visit_is_not_forgotten(
    company: Company, hook: Hook, clock: Clock
) -> None:
    sink = attach(company, hook)
    (visit,) = _claim_due(company.tenant_id, clock())

    replay_sink(actor=company.administrator.actor, sink_id=sink.id, from_sequence=1, now=clock())
    _store_result(visit, DeliveryResult(7, "", timedelta()), clock())

    assert state(company).delivered_sequence == 0


def test_a_replay_saves_a_failing_sink_no_wait(company: Company, hook: Hook, clock: Clock) -> None:
    sink = attach(company, hook)
    hook.statuses = [500]
    deliver_due(clock=clock)

    replay_sink(actor=company.administrator.actor, sink_id=sink.id, from_sequence=1, now=clock())
    deliver_due(clock=clock)

    assert hook.num_asked == 1
    assert state(company).next_attempt_at == clock.now + timedelta(seconds=5)


def test_a_replay_during_a_visit_that_fails_saves_no_wait(
    company: Company, hook: Hook, clock: Clock
) -> None:
    sink = attach(company, hook)
    (visit,) = _claim_due(company.tenant_id, clock())

    replay_sink(actor=company.administrator.actor, sink_id=sink.id, from_sequence=1, now=clock())
    _store_result(
        visit, DeliveryResult(None, "The receiver did not respond in time.", timedelta()), clock()
    )

    assert state(company).num_failures == 1
    assert state(company).next_attempt_at == clock.now + timedelta(seconds=5)


def test_one_tenants_many_sinks_take_turns_with_all_others(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    for number in range(10):
        address = f"syslog+tcp://127.0.0.1:{syslog.port}"
        new = NewSink(name=str(number), address=address, from_sequence=7)
        create_sink(actor=company.administrator.actor, new=new, now=clock())

    assert len(list(_claim_due(company.tenant_id, clock()))) == 8

    clock.turn(seconds=61)
    deliver_due(clock=clock)

    with tenant_scope(company.tenant_id):
        assert set(AuditSink.objects.values_list("delivered_sequence", flat=True)) == {16}


def test_sinks_that_fail_keep_their_siblings_from_no_turn(
    company: Company, hook: Hook, clock: Clock
) -> None:
    for number in range(9):
        new = NewSink(name=str(number), address="http://127.0.0.1:1/", from_sequence=1)
        create_sink(actor=company.administrator.actor, new=new, now=clock())
    last = attach(company, hook)
    with tenant_scope(company.tenant_id):
        AuditSink.objects.filter(id=last.id).update(delivered_at=clock.now)

    deliver_due(clock=clock)

    assert hook.got


def test_nobody_is_always_the_last_of_a_run(
    company: Company, syslog: Syslog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_worker, "_MAX_AT_ONCE", 1)
    neighbour, first = make_company("neighbour", ACME), set()
    for each in (company, neighbour):
        attach_syslog(each, syslog)

    for _ in range(24):
        syslog.lines.clear()
        deliver_due(clock=clock)
        first.add(json.loads(syslog.lines[0][syslog.lines[0].index("{") :])["tenant_id"])
        add(company)
        add(neighbour)

    assert first == {company.tenant_id, neighbour.tenant_id}
    with tenant_scope(neighbour.tenant_id):
        AuditSink.objects.all().delete()


def test_a_deleted_sink_gets_nothing(company: Company, hook: Hook, clock: Clock) -> None:
    sink = attach(company, hook)
    delete_sink(actor=company.administrator.actor, sink_id=sink.id, now=clock())

    deliver_due(clock=clock)

    assert hook.num_asked == 0


def test_each_sink_has_its_own_cursor_and_one_that_fails_stops_no_other(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach(company, hook)
    with webhook() as other:
        attach(company, other)
        other.statuses = [500]

        deliver_due(clock=clock)

        assert (len(hook.got), len(other.got)) == (8, 0)


@pytest.mark.parametrize("kept", [b"no JSON", b'{"address": "URL", "secret": "whsec_!"}'])
def test_what_breaks_at_one_tenants_sink_stops_nobody_elses(
    company: Company, hook: Hook, clock: Clock, kept: bytes
) -> None:
    with webhook() as other:
        broken, neighbour = attach(company, other), make_company("neighbour", ACME)
        data = kept.replace(b"URL", other.url.encode())
        place = SealContext("tenants_auditsink", "sealed", str(broken.id))
        scope = f"audit-sink:{broken.id}"
        sealed = seal_for(company.tenant_id, scope, place=place, data=data, now=clock())
        with tenant_scope(company.tenant_id):
            AuditSink.objects.update(sealed=sealed)
        attach(neighbour, hook)

        assert deliver_due(clock=clock) == 7
        assert hook.sequences == list(range(1, 8))
        with tenant_scope(neighbour.tenant_id):
            AuditSink.objects.all().delete()


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("https://siem.invalid/hook", "The host name does not resolve."),
        ("http://127.0.0.1:1/", "The receiver is not reachable."),
        ("syslog+tls://logs.invalid", "The host name does not resolve."),
        ("syslog+tcp://127.0.0.1:1", "The receiver is not reachable."),
    ],
)
def test_what_cannot_be_reached_is_said(
    company: Company, clock: Clock, address: str, error: str
) -> None:
    new = NewSink(name="x", address=address, from_sequence=1)
    create_sink(actor=company.administrator.actor, new=new, now=clock())

    deliver_due(clock=clock)

    assert state(company).last_error == error


def test_the_workers_task_pushes(company: Company, hook: Hook) -> None:
    attach(company, hook)

    deliver_audit_entries()

    assert len(hook.got) == 7


def test_of_two_runs_at_once_one_does_nothing(company: Company, hook: Hook) -> None:
    attach(company, hook)

    with redis_lock(connect(), "audit-push") as is_alone:
        deliver_audit_entries()

    assert is_alone
    assert hook.num_asked == 0

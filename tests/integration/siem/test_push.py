"""Audit entries reach a tenant's sinks (webhooks, syslog servers) in order and at least once.

With its first sink, a company's audit log has seven entries: six of its creation, one of the sink.
"""

import json
from datetime import timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.compliance.audit_sinks import delivery_worker
from tenants.compliance.audit_sinks.delivery_worker import (
    MAX_MESSAGES,
    DeliveryResult,
    _claim_due,
    deliver_due_entries,
)
from tenants.compliance.audit_sinks.operations import NewSink, create_sink, delete_sink, replay_sink
from tenants.compliance.tasks import deliver_audit_entries
from tenants.models import AuditSink
from tenants.security.audit.hash_chain import hash_document
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.operations import seal_in_scope
from tests.fakes.siem_servers import Hook, Syslog, webhook
from tests.fixtures.companies import Company
from tests.integration.siem.clock import Clock
from tests.integration.siem.sink_fixtures import (
    add_entries,
    attach_syslog,
    attach_webhook,
    get_sink,
    make_neighbour,
)


def test_a_webhook_gets_every_entry_signed_and_in_order(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach_webhook(company, hook)
    add_entries(company, 3)

    deliver_due_entries(clock=clock)

    assert hook.sequences == list(range(1, 11))
    assert [payload["data"]["hash"] for payload in hook.payloads] == [
        hash_document(payload["data"]).hex() for payload in hook.payloads
    ]
    assert (get_sink(company).delivered_sequence, get_sink(company).num_waiting) == (10, 0)
    assert get_sink(company).delivered_at == clock.now


def test_a_receivers_library_verifies_the_signature(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach_webhook(company, hook)

    deliver_due_entries(clock=clock)

    assert hook.last is not None
    body, headers = hook.last
    assert Webhook(hook.secret).verify(body, dict(headers))["data"]["sequence"] == 7
    with pytest.raises(WebhookVerificationError):
        Webhook(hook.secret).verify(body.replace(b"7", b"8"), dict(headers))


def test_a_sink_without_pending_entries_gets_no_request(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach_webhook(company, hook)
    deliver_due_entries(clock=clock)
    num_requests = hook.num_requests

    assert deliver_due_entries(clock=clock) == 0
    assert hook.num_requests == num_requests


def test_a_new_sink_gets_only_later_entries(company: Company, hook: Hook, clock: Clock) -> None:
    attach_webhook(company, hook, from_sequence=None)
    add_entries(company)

    deliver_due_entries(clock=clock)

    assert [payload["data"]["action"] for payload in hook.payloads] == [
        "audit_sink.created",
        "test.done",
    ]


def test_a_large_backlog_is_delivered_in_several_runs(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach_webhook(company, hook)
    add_entries(company, 2 * MAX_MESSAGES)

    while deliver_due_entries(clock=clock):
        clock.advance(seconds=30)

    assert hook.sequences == list(range(1, 2 * MAX_MESSAGES + 8))


def test_a_syslog_backlog_is_delivered_in_one_run(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    attach_syslog(company, syslog)
    add_entries(company, 2 * MAX_MESSAGES)

    assert deliver_due_entries(clock=clock) == 2 * MAX_MESSAGES + 7
    assert syslog.sequences == list(range(1, 2 * MAX_MESSAGES + 8))


def test_a_sink_that_another_worker_has_served_is_not_claimed(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    attach_syslog(company, syslog)
    with tenant_scope(company.tenant_id):
        sink = AuditSink.objects.get()
        AuditSink.objects.update(delivered_sequence=7)

        assert delivery_worker._claim_sink(company.tenant_id, sink, clock()) is None
        assert AuditSink.objects.get().claimed_until is None


@pytest.mark.parametrize("status", [302, 400, 410, 500])
def test_a_rejected_entry_is_reported_and_retried(
    company: Company, hook: Hook, clock: Clock, status: int
) -> None:
    attach_webhook(company, hook)
    hook.statuses = [204, 204, status]

    deliver_due_entries(clock=clock)

    sink = get_sink(company)
    assert hook.sequences == [1, 2]
    assert sink.last_error == f"The receiver responded with status {status}."
    assert (sink.failed_since, sink.num_failures) == (clock.now, 1)
    assert sink.next_attempt_at == clock.now + timedelta(seconds=5)
    deliver_due_entries(clock=clock)
    assert hook.num_requests == 3

    clock.advance(seconds=6)
    deliver_due_entries(clock=clock)

    assert hook.sequences == list(range(1, 8))
    assert (get_sink(company).failed_since, get_sink(company).last_error) == (None, "")


def test_a_failing_sink_is_retried_with_increasing_delays(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach_webhook(company, hook)
    hook.statuses = [500] * 3
    began_at = clock.now
    waits_s = []
    for _ in range(3):
        deliver_due_entries(clock=clock)
        next_attempt = get_sink(company).next_attempt_at
        assert next_attempt is not None
        waits_s.append((next_attempt - clock.now).total_seconds())
        clock.now = next_attempt

    assert waits_s == [5, 10, 20]
    assert (get_sink(company).failed_since, get_sink(company).num_failures) == (began_at, 3)


def test_a_clock_set_back_does_not_delay_a_sink(company: Company, hook: Hook, clock: Clock) -> None:
    attach_webhook(company, hook)
    hook.statuses = [500]
    deliver_due_entries(clock=clock)

    clock.advance(days=-400)
    deliver_due_entries(clock=clock)

    assert hook.sequences == list(range(1, 8))


def test_an_unrecorded_delivery_is_repeated_with_the_same_id(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach_webhook(company, hook)
    deliver_due_entries(clock=clock)
    with tenant_scope(company.tenant_id):
        AuditSink.objects.update(delivered_sequence=5)  # as if the worker had been killed

    deliver_due_entries(clock=clock)

    assert hook.sequences == [1, 2, 3, 4, 5, 6, 7, 6, 7]
    assert hook.ids[5:7] == hook.ids[7:9]


def test_a_claimed_sink_is_skipped_until_the_claim_expires(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach_webhook(company, hook)
    assert len(list(_claim_due(company.tenant_id, clock()))) == 1

    deliver_due_entries(clock=clock)
    assert hook.payloads == []

    clock.advance(seconds=61)  # a claim expires after 60
    deliver_due_entries(clock=clock)
    assert len(hook.payloads) == 7


def test_only_one_of_two_workers_claims_a_sink(company: Company, hook: Hook, clock: Clock) -> None:
    attach_webhook(company, hook)
    with tenant_scope(company.tenant_id):
        sink = AuditSink.objects.get()
        first = delivery_worker._claim_sink(company.tenant_id, sink, clock())
        second = delivery_worker._claim_sink(company.tenant_id, sink, clock())

    assert first is not None
    assert second is None


def test_a_replay_sends_all_later_entries_again(company: Company, hook: Hook, clock: Clock) -> None:
    sink = attach_webhook(company, hook)
    deliver_due_entries(clock=clock)

    replay_sink(actor=company.administrator.actor, sink_id=sink.id, from_sequence=3, now=clock())
    deliver_due_entries(clock=clock)

    assert hook.sequences == [1, 2, 3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 8]  # 8: of the replay itself


def test_a_replay_during_a_delivery_is_not_lost(company: Company, hook: Hook, clock: Clock) -> None:
    sink = attach_webhook(company, hook)
    (run,) = _claim_due(company.tenant_id, clock())

    replay_sink(actor=company.administrator.actor, sink_id=sink.id, from_sequence=1, now=clock())
    result = DeliveryResult(delivered_sequence=7, error="", took=timedelta())
    delivery_worker._store_result(run, result, clock())

    assert get_sink(company).delivered_sequence == 0


def test_a_replay_does_not_shorten_a_failing_sinks_wait(
    company: Company, hook: Hook, clock: Clock
) -> None:
    sink = attach_webhook(company, hook)
    hook.statuses = [500]
    deliver_due_entries(clock=clock)

    replay_sink(actor=company.administrator.actor, sink_id=sink.id, from_sequence=1, now=clock())
    deliver_due_entries(clock=clock)

    assert hook.num_requests == 1
    assert get_sink(company).next_attempt_at == clock.now + timedelta(seconds=5)


def test_a_replay_during_a_failing_delivery_does_not_shorten_the_wait(
    company: Company, hook: Hook, clock: Clock
) -> None:
    sink = attach_webhook(company, hook)
    (run,) = _claim_due(company.tenant_id, clock())

    replay_sink(actor=company.administrator.actor, sink_id=sink.id, from_sequence=1, now=clock())
    error = "The receiver did not respond in time."
    delivery_worker._store_result(run, DeliveryResult(None, error, took=timedelta()), clock())

    assert get_sink(company).num_failures == 1
    assert get_sink(company).next_attempt_at == clock.now + timedelta(seconds=5)


def test_all_sinks_of_a_tenant_with_many_are_served(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    for number in range(10):
        address = f"syslog+tcp://127.0.0.1:{syslog.port}"
        new = NewSink(name=str(number), address=address, from_sequence=7)
        create_sink(actor=company.administrator.actor, new=new, now=clock())

    assert len(list(_claim_due(company.tenant_id, clock()))) == 8  # one run claims no more

    clock.advance(seconds=61)  # a claim expires after 60
    deliver_due_entries(clock=clock)

    with tenant_scope(company.tenant_id):
        # Six entries of the company, and one of each sink.
        assert set(AuditSink.objects.values_list("delivered_sequence", flat=True)) == {16}


def test_failing_sinks_do_not_delay_the_tenants_other_sinks(
    company: Company, hook: Hook, clock: Clock
) -> None:
    for number in range(9):  # one run claims at most 8
        new = NewSink(name=str(number), address="http://127.0.0.1:1/", from_sequence=1)
        create_sink(actor=company.administrator.actor, new=new, now=clock())
    working_sink = attach_webhook(company, hook)
    with tenant_scope(company.tenant_id):
        AuditSink.objects.filter(id=working_sink.id).update(delivered_at=clock.now)

    deliver_due_entries(clock=clock)

    assert hook.payloads


def test_the_order_of_tenants_varies_between_runs(
    company: Company, syslog: Syslog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_worker, "_MAX_AT_ONCE", 8)  # so each tenant has its own batch
    other_company, first_tenant_ids = make_neighbour(), set()
    for tenant in (company, other_company):
        attach_syslog(tenant, syslog)

    for _ in range(24):  # all runs have the same order with a probability of 1 in 8 million
        syslog.lines.clear()
        deliver_due_entries(clock=clock)
        first_tenant_ids.add(json.loads(syslog.lines[0][syslog.lines[0].index("{") :])["tenant_id"])
        if len(first_tenant_ids) == 2:
            break
        add_entries(company)
        add_entries(other_company)

    assert first_tenant_ids == {company.tenant_id, other_company.tenant_id}
    with tenant_scope(other_company.tenant_id):
        AuditSink.objects.all().delete()


def test_a_deleted_sink_gets_no_entries(company: Company, hook: Hook, clock: Clock) -> None:
    sink = attach_webhook(company, hook)
    delete_sink(actor=company.administrator.actor, sink_id=sink.id, now=clock())

    deliver_due_entries(clock=clock)

    assert hook.num_requests == 0


def test_a_failing_sink_does_not_stop_another(company: Company, hook: Hook, clock: Clock) -> None:
    attach_webhook(company, hook)
    with webhook() as other_hook:
        attach_webhook(company, other_hook)
        other_hook.statuses = [500]

        deliver_due_entries(clock=clock)

        assert (len(hook.payloads), len(other_hook.payloads)) == (8, 0)  # 6 entries, 2 sinks


@pytest.mark.parametrize("stored", [b"not JSON", b'{"address": "URL", "secret": "whsec_!"}'])
def test_a_broken_sink_of_one_tenant_does_not_stop_another_tenants_sink(
    company: Company, hook: Hook, clock: Clock, stored: bytes
) -> None:
    with webhook() as other_hook:
        broken_sink, other_company = attach_webhook(company, other_hook), make_neighbour()
        data = stored.replace(b"URL", other_hook.url.encode())
        seal_context = SealContext("tenants_auditsink", "sealed", str(broken_sink.id))
        scope = f"audit-sink:{broken_sink.id}"
        sealed = seal_in_scope(
            company.tenant_id, scope, context=seal_context, data=data, now=clock()
        )
        with tenant_scope(company.tenant_id):
            AuditSink.objects.update(sealed=sealed)
        attach_webhook(other_company, hook)

        assert deliver_due_entries(clock=clock) == 7
        assert hook.sequences == list(range(1, 8))
        with tenant_scope(other_company.tenant_id):
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
def test_an_unreachable_receiver_is_reported(
    company: Company, clock: Clock, address: str, error: str
) -> None:
    new = NewSink(name="x", address=address, from_sequence=1)
    create_sink(actor=company.administrator.actor, new=new, now=clock())

    deliver_due_entries(clock=clock)

    assert get_sink(company).last_error == error


def test_the_workers_task_delivers_entries(company: Company, hook: Hook) -> None:
    attach_webhook(company, hook)

    deliver_audit_entries()

    assert len(hook.payloads) == 7


def test_a_concurrent_run_delivers_nothing(company: Company, hook: Hook) -> None:
    attach_webhook(company, hook)

    with redis_lock(connect_to_redis(), "audit-push") as is_alone:
        deliver_audit_entries()

    assert is_alone
    assert hook.num_requests == 0

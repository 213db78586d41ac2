"""An administrator can request a retry, so that a repaired sink gets its entries at once."""

from datetime import timedelta

import pytest

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, NotFound
from tenants.compliance.audit_sinks.delivery_worker import deliver_due_entries
from tenants.compliance.audit_sinks.operations import probe_sink, retry_sink
from tenants.compliance.audit_sinks.queries import SinkView
from tenants.models import AuditEntry, AuditSink
from tests.fakes.siem_servers import Hook
from tests.fixtures.companies import Cast, Company
from tests.integration.siem.clock import Clock
from tests.integration.siem.sink_fixtures import attach_webhook, get_sink


@pytest.fixture
def failing_sink(company: Company, hook: Hook, clock: Clock) -> SinkView:
    """Return a sink that has failed 13 times, so that its next attempt is in an hour."""
    sink = attach_webhook(company, hook)
    hook.statuses = [500]
    with tenant_scope(company.tenant_id):
        AuditSink.objects.update(num_failures=12)

    deliver_due_entries(clock=clock)
    assert get_sink(company).next_attempt_at == clock.now + timedelta(hours=1)
    return sink


def list_entries(company: Company, action: str) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        return list(AuditEntry.objects.filter(action=action))


def test_a_successful_test_message_ends_the_wait(
    company: Company, hook: Hook, clock: Clock, failing_sink: SinkView
) -> None:
    result = probe_sink(actor=company.administrator.actor, sink_id=failing_sink.id, clock=clock)
    deliver_due_entries(clock=clock)

    assert result.delivered
    assert (get_sink(company).num_failures, get_sink(company).num_waiting) == (0, 0)


def test_a_failed_test_message_does_not_end_the_wait(
    company: Company, hook: Hook, clock: Clock, failing_sink: SinkView
) -> None:
    hook.statuses = [500]

    probe_sink(actor=company.administrator.actor, sink_id=failing_sink.id, clock=clock)

    assert get_sink(company).next_attempt_at == clock.now + timedelta(hours=1)


def test_a_requested_retry_is_immediate_and_audited(
    company: Company, hook: Hook, clock: Clock, failing_sink: SinkView
) -> None:
    clock.advance(minutes=1)

    retry_sink(actor=company.administrator.actor, sink_id=failing_sink.id, now=clock())
    deliver_due_entries(clock=clock)

    assert hook.sequences[:2] == [1, 2]
    (entry,) = list_entries(company, "audit_sink.retried")
    assert entry.target == f"audit_sink:{failing_sink.id}"


def test_a_retry_is_refused_within_a_minute_of_the_last_attempt(
    company: Company, hook: Hook, clock: Clock, failing_sink: SinkView
) -> None:
    actor = company.administrator.actor
    clock.advance(seconds=59)
    with pytest.raises(Conflict, match="less than a minute ago"):
        retry_sink(actor=actor, sink_id=failing_sink.id, now=clock())
    clock.advance(seconds=1)
    hook.statuses = [500]

    for _ in range(2):
        retry_sink(actor=actor, sink_id=failing_sink.id, now=clock())
    deliver_due_entries(clock=clock)

    assert get_sink(company).num_failures == 14, "further failures must be counted"
    with pytest.raises(Conflict, match="less than a minute ago"):
        retry_sink(actor=actor, sink_id=failing_sink.id, now=clock())


def test_a_retry_does_not_affect_a_working_sink(company: Company, hook: Hook, clock: Clock) -> None:
    sink = attach_webhook(company, hook)
    scheduled_at = clock.now + timedelta(seconds=30)
    with tenant_scope(company.tenant_id):
        AuditSink.objects.update(next_attempt_at=scheduled_at)

    retry_sink(actor=company.administrator.actor, sink_id=sink.id, now=clock())
    probe_sink(actor=company.administrator.actor, sink_id=sink.id, clock=clock)

    assert get_sink(company).next_attempt_at == scheduled_at
    assert list_entries(company, "audit_sink.retried") == []


def test_another_tenant_and_a_developer_cannot_request_a_retry(
    company: Company, cast: Cast, clock: Clock, failing_sink: SinkView
) -> None:
    clock.advance(minutes=2)

    with pytest.raises(NotFound):
        retry_sink(actor=cast.globex.administrator.actor, sink_id=failing_sink.id, now=clock())
    with pytest.raises(Forbidden):
        retry_sink(actor=company.developer.actor, sink_id=failing_sink.id, now=clock())

"""A repaired sink does not have to wait for an hour."""

from datetime import timedelta

import pytest

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, NotFound
from tenants.compliance.audit_sinks.delivery_worker import deliver_due
from tenants.compliance.audit_sinks.operations import probe_sink, retry_sink
from tenants.compliance.audit_sinks.queries import SinkView
from tenants.models import AuditEntry, AuditSink
from tests.fakes.siem_servers import Hook
from tests.fixtures.companies import Cast, Company
from tests.integration.siem.clock import Clock
from tests.integration.siem.sink_fixtures import attach, state


@pytest.fixture
def failing(company: Company, hook: Hook, clock: Clock) -> SinkView:
    """Make a sink that has failed so often that its next attempt is in an hour."""
    sink = attach(company, hook)
    hook.statuses = [500]
    with tenant_scope(company.tenant_id):
        AuditSink.objects.update(num_failures=12)
    deliver_due(clock=clock)
    assert state(company).next_attempt_at == clock.now + timedelta(hours=1)
    return sink


def entries(company: Company, action: str) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        return list(AuditEntry.objects.filter(action=action))


def test_a_test_that_arrives_ends_its_wait(
    company: Company, hook: Hook, clock: Clock, failing: SinkView
) -> None:
    tried = probe_sink(actor=company.administrator.actor, sink_id=failing.id, clock=clock)
    deliver_due(clock=clock)

    assert tried.delivered
    assert (state(company).num_failures, state(company).num_waiting) == (0, 0)


def test_a_test_that_does_not_arrive_ends_none(
    company: Company, hook: Hook, clock: Clock, failing: SinkView
) -> None:
    hook.statuses = [500]

    probe_sink(actor=company.administrator.actor, sink_id=failing.id, clock=clock)

    assert state(company).next_attempt_at == clock.now + timedelta(hours=1)


def test_who_asks_for_it_has_it_tried_at_once_and_that_is_in_the_trail(
    company: Company, hook: Hook, clock: Clock, failing: SinkView
) -> None:
    clock.turn(minutes=1)

    retry_sink(actor=company.administrator.actor, sink_id=failing.id, now=clock())
    deliver_due(clock=clock)

    assert hook.sequences[:2] == [1, 2]
    (entry,) = entries(company, "audit_sink.retried")
    assert entry.target == f"audit_sink:{failing.id}"


def test_it_is_not_tried_twice_in_a_minute(
    company: Company, hook: Hook, clock: Clock, failing: SinkView
) -> None:
    actor = company.administrator.actor
    clock.turn(seconds=59)
    with pytest.raises(Conflict, match="a moment ago"):
        retry_sink(actor=actor, sink_id=failing.id, now=clock())
    clock.turn(seconds=1)
    hook.statuses = [500]

    for _ in range(2):
        retry_sink(actor=actor, sink_id=failing.id, now=clock())
    deliver_due(clock=clock)

    assert state(company).num_failures == 14, "further failures must be counted"
    with pytest.raises(Conflict, match="a moment ago"):
        retry_sink(actor=actor, sink_id=failing.id, now=clock())


def test_one_that_does_not_fail_is_left_as_it_is(
    company: Company, hook: Hook, clock: Clock
) -> None:
    sink = attach(company, hook)
    rest = clock.now + timedelta(seconds=30)
    with tenant_scope(company.tenant_id):
        AuditSink.objects.update(next_attempt_at=rest)

    retry_sink(actor=company.administrator.actor, sink_id=sink.id, now=clock())
    probe_sink(actor=company.administrator.actor, sink_id=sink.id, clock=clock)

    assert state(company).next_attempt_at == rest
    assert entries(company, "audit_sink.retried") == []


def test_neither_a_neighbour_nor_a_developer_has_it_tried(
    company: Company, cast: Cast, clock: Clock, failing: SinkView
) -> None:
    clock.turn(minutes=2)

    with pytest.raises(NotFound):
        retry_sink(actor=cast.globex.administrator.actor, sink_id=failing.id, now=clock())
    with pytest.raises(Forbidden):
        retry_sink(actor=company.developer.actor, sink_id=failing.id, now=clock())

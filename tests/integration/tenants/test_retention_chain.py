"""A purge of the audit log removes only its oldest entries, despite wrong clocks and holds."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import AuditEntry, Tenant
from tenants.policy.data_classes import DataClass
from tenants.privacy.retention.operations import NewHold, place_hold, set_rule
from tenants.privacy.retention.tables import RETENTION_TABLES, HoldPeriod, delete_due_batch
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor, build_system_actor
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
USAGE = DataClass.USAGE


@pytest.fixture
def company() -> Company:
    return make_company("umbrella", ACME_PEOPLE)


def owner(company: Company) -> Actor:
    return company.people[Role.OWNER].actor


def list_due_sequences(company: Company, *holds: HoldPeriod) -> list[int]:
    """Return the sequence numbers of the entries that would be purged in ten years."""
    (table,) = RETENTION_TABLES[DataClass.AUDIT]
    with tenant_scope(company.tenant_id):
        due = table.select_due(company.tenant_id, timezone.now() + timedelta(days=3_653), holds)
        return sorted(due.values_list("sequence", flat=True))


def test_only_the_beginning_of_a_chain_is_purged(company: Company) -> None:
    """The owner's last entry is on hold, so the administrator's entry after it is not due."""
    set_rule(actor=owner(company), data_class=USAGE, days=90, reason="x", now=NOW)
    before = list_due_sequences(company)
    # This adds the administrator's entry. `list_due_sequences` applies only the holds it is given.
    place_hold(actor=company.administrator.actor, new=NewHold("m", "r"), now=NOW)

    owner_id = uuid.UUID(owner(company).user_id)
    owner_hold = HoldPeriod(owner_id, since=None, until=None)
    due_sequences = list_due_sequences(company, owner_hold)

    assert before == list(range(1, len(before) + 1))
    assert due_sequences == before[:-1]


def test_a_clock_that_jumped_leaves_no_gap_in_a_chain(company: Company) -> None:
    future = timezone.now() + timedelta(days=10_000)
    before = list_due_sequences(company)
    set_rule(actor=owner(company), data_class=USAGE, days=90, reason="x", now=future)
    set_rule(actor=owner(company), data_class=USAGE, days=80, reason="x", now=NOW)

    assert list_due_sequences(company) == before


def test_a_batch_deletes_the_first_entry_of_a_chain_although_its_time_is_later() -> None:
    now = timezone.now()
    with transaction.atomic():
        row = Tenant.objects.create(
            slug="hooli-chain", name="Hooli", status=TenantStatus.ACTIVE, created_at=now
        )
        tenant_id = TenantId(str(row.id))
        actor = build_system_actor(tenant_id)
        with tenant_scope(tenant_id):
            # The first entry is 800 days old, and the second is 900 days old.
            for days in (800, 900):
                record_change(
                    actor=actor,
                    action="test.done",
                    target="test:1",
                    change=(None, None),
                    now=now - timedelta(days=days),
                )

            delete_due_batch(DataClass.AUDIT, tenant_id=tenant_id, cutoff=now, holds=(), limit=1)

            remaining = list(AuditEntry.objects.values_list("sequence", flat=True))
        transaction.set_rollback(True)  # no tenant with wrong times stays behind

    assert remaining == [2]

"""Heads of audit chains are signed once an hour, and never over a modified chain."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection
from structlog.testing import capture_logs

from caret.foundation.crypto.signing import verify_document
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.models import AuditEntry, AuditHead, SignedAuditHead
from tenants.security.audit.hash_chain import HEAD_PURPOSE
from tenants.security.audit.operations import record_change
from tenants.security.audit.signed_heads import (
    ChainBroken,
    build_signed_document,
    sign_all_heads,
    sign_head,
)
from tenants.security.tasks import sign_audit_heads
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company
from tests.stack.services import Services

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def company() -> Company:
    """Make a company. Its audit log then has three entries."""
    return make_company("initech", GLOBEX_PEOPLE, records_additions=True)


@pytest.fixture
def tamper(services: Services, company: Company) -> Iterator[Callable[[str], None]]:
    """Return a function that runs a statement as the owner of the tables, for this tenant only.

    The statement must end with a WHERE clause, to which the function adds the tenant.
    """
    with psycopg.connect(services.owner_database_url, autocommit=True) as owner:

        def run(statement: str) -> None:
            # With FORCE, row-level security also applies to the owner.
            owner.execute("ALTER TABLE tenants_auditentry NO FORCE ROW LEVEL SECURITY")
            owner.execute(f"{statement} AND tenant_id = '{company.tenant_id}'")
            owner.execute("ALTER TABLE tenants_auditentry FORCE ROW LEVEL SECURITY")

        yield run


def add_entry(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        record_change(
            actor=company.platform, action="test", target="t", change=(None, None), now=NOON
        )


def sign_current_head(company: Company, now: datetime = NOON) -> bool:
    """Sign the head if a signature is due, and return whether it was signed."""
    return sign_head(tenant_id=company.tenant_id, keys=load_signing_keys(), now=now)


def list_signed_heads(company: Company) -> list[SignedAuditHead]:
    with tenant_scope(company.tenant_id):
        return list(SignedAuditHead.objects.order_by("sequence"))


def test_a_signed_head_names_the_last_entry_and_verifies(company: Company) -> None:
    assert sign_current_head(company)

    (head,) = list_signed_heads(company)
    with tenant_scope(company.tenant_id):
        last = AuditEntry.objects.order_by("-sequence")[0]
    assert (head.sequence, bytes(head.hash)) == (last.sequence, bytes(last.hash))
    verify_document(
        load_signing_keys().public_keys(), build_signed_document(head), purpose=HEAD_PURPOSE
    )


@pytest.mark.parametrize("minutes", [0, 30, 59])
def test_a_second_run_within_an_hour_signs_nothing(company: Company, minutes: int) -> None:
    sign_current_head(company)
    add_entry(company)

    assert not sign_current_head(company, NOON + timedelta(minutes=minutes))
    assert len(list_signed_heads(company)) == 1


def test_a_grown_chain_is_signed_in_the_next_hour(company: Company) -> None:
    sign_current_head(company)
    add_entry(company)

    assert sign_current_head(company, NOON + HOUR)
    assert [head.sequence for head in list_signed_heads(company)] == [3, 4]


def test_a_chain_that_has_not_grown_is_not_signed_again(company: Company) -> None:
    sign_current_head(company)

    assert not sign_current_head(company, NOON + HOUR)


def test_a_grown_chain_is_signed_after_a_clock_was_set_back(company: Company) -> None:
    sign_current_head(company)
    add_entry(company)

    assert sign_current_head(company, NOON - 24 * HOUR)


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM tenants_signedaudithead", "UPDATE tenants_signedaudithead SET sequence = 1"],
)
def test_a_head_can_neither_be_changed_nor_deleted(company: Company, statement: str) -> None:
    sign_current_head(company)

    with (
        pytest.raises(DatabaseError, match="permission denied"),
        tenant_scope(company.tenant_id),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


@pytest.mark.parametrize(
    ("statement", "sequence"),
    [
        ("UPDATE tenants_auditentry SET reason = 'another' WHERE sequence = 2", 2),
        ("UPDATE tenants_auditentry SET previous_hash = hash WHERE sequence = 3", 3),
        ("DELETE FROM tenants_auditentry WHERE sequence = 1", 1),
        ("DELETE FROM tenants_auditentry WHERE sequence = 3", 3),
    ],
)
def test_a_modified_chain_is_not_signed(
    company: Company, tamper: Any, statement: str, sequence: int
) -> None:
    tamper(statement)

    with pytest.raises(ChainBroken) as exc_info:
        sign_current_head(company)

    assert exc_info.value.sequence == sequence
    assert list_signed_heads(company) == []


def test_a_replaced_head_is_noticed_before_the_chain_grows(company: Company) -> None:
    sign_current_head(company)
    with tenant_scope(company.tenant_id):
        AuditHead.objects.filter(tenant_id=company.tenant_id).update(hash=bytes(32))

    with pytest.raises(ChainBroken):
        sign_current_head(company, NOON + HOUR)


def test_a_broken_chain_is_reported_and_other_chains_are_signed(
    company: Company, tamper: Any
) -> None:
    unmodified_company = make_company("sound", {})
    tamper("DELETE FROM tenants_auditentry WHERE sequence = 2")

    with capture_logs() as logs:
        sign_all_heads(keys=load_signing_keys(), now=NOON)

    # Other tests have left tenants with broken chains.
    reports = [log for log in logs if log["event"] == "audit.chain_broken"]
    (report,) = [log for log in reports if log["tenant_id"] == company.tenant_id]
    assert report["sequence"] == 2
    assert len(list_signed_heads(unmodified_company)) == 1


def test_the_workers_task_signs_heads(company: Company) -> None:
    sign_audit_heads()

    assert len(list_signed_heads(company)) == 1


def test_another_tenant_does_not_see_the_heads(company: Company) -> None:
    sign_current_head(company)
    other_company = make_company("other", {})

    with tenant_scope(other_company.tenant_id):
        assert not SignedAuditHead.objects.filter(tenant_id=company.tenant_id).exists()

"""The migration that adds older audit entries to the chain.

Its function runs as the owner in a transaction that is rolled back.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connections, transaction

from caret.foundation.ids import uuid7
from tenants.models import AuditEntry, AuditHead
from tenants.security.audit.hash_chain import GENESIS, build_document, hash_document
from tests.fixtures.companies import GLOBEX, Company, make_company

COLUMNS = ("sequence", "previous_hash", "hash", "actor_kind", "actor_key")
TABLES = ("tenants_auditentry", "tenants_audithead")
fill = import_module("tenants.migrations.0007_audit_chain_fill").fill


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX)


@pytest.fixture
def owner(company: Company) -> Iterator[Any]:
    """Set the columns as they are between the first migration and the third."""
    connection = connections["owner"]
    with transaction.atomic(using="owner"), connection.cursor() as cursor:
        for column in COLUMNS:
            cursor.execute(f"ALTER TABLE tenants_auditentry ALTER {column} DROP NOT NULL")
        yield cursor
        transaction.set_rollback(True, using="owner")


def add_unchained_entry(owner: Any, company: Company, *, reason: str) -> None:
    owner.execute("ALTER TABLE tenants_auditentry NO FORCE ROW LEVEL SECURITY")
    owner.execute(
        "INSERT INTO tenants_auditentry (tenant_id, id, actor_id, action, target, after,"
        " address, request_id, reason, at) VALUES (%s, %s, %s, 'key.made', 'key:x',"
        """ '{"micros": 12345678901234567890, "share": 1e22}', '192.0.2.7', '', %s, now())""",
        [company.tenant_id, uuid7(), company.administrator.user_id, reason],
    )
    # Constraints that are checked at the commit would prevent the ALTER.
    owner.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
    owner.execute("ALTER TABLE tenants_auditentry FORCE ROW LEVEL SECURITY")


def run_fill() -> None:
    with connections["owner"].schema_editor(atomic=False) as editor:
        fill(apps, editor)


def read_chain(owner: Any, company: Company) -> list[AuditEntry]:
    for table in TABLES:
        owner.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    entries = list(
        AuditEntry.objects.using("owner").filter(tenant_id=company.tenant_id).order_by("sequence")
    )
    head = AuditHead.objects.using("owner").get(tenant_id=company.tenant_id)
    assert (head.sequence, bytes(head.hash)) == (len(entries), bytes(entries[-1].hash))
    return entries


def test_unchained_entries_are_added_after_chained_ones(owner: Any, company: Company) -> None:
    add_unchained_entry(owner, company, reason="first")
    add_unchained_entry(owner, company, reason="second")

    run_fill()

    entries, last = read_chain(owner, company), GENESIS
    assert [entry.reason for entry in entries] == ["", "", "", "first", "second"]
    for number, entry in enumerate(entries, start=1):
        assert (entry.sequence, bytes(entry.previous_hash)) == (number, last)
        last = bytes(entry.hash)
        assert hash_document(build_document(entry)) == last
    assert (entries[-1].actor_kind, entries[-1].actor_key) == ("user", "")


def test_an_empty_chain_starts_with_the_oldest_entry(owner: Any, company: Company) -> None:
    for table in TABLES:
        owner.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    unset = ", ".join(f"{column} = NULL" for column in COLUMNS)
    owner.execute(f"UPDATE tenants_auditentry SET {unset}")  # noqa: S608  # our own names
    owner.execute("DELETE FROM tenants_audithead")

    run_fill()

    actions = [entry.action for entry in read_chain(owner, company)]
    assert actions == ["tenant.created", "member.added", "member.added"]


def test_a_second_run_changes_nothing(owner: Any, company: Company) -> None:
    add_unchained_entry(owner, company, reason="first")
    run_fill()
    before = [bytes(entry.hash) for entry in read_chain(owner, company)]

    run_fill()

    assert [bytes(entry.hash) for entry in read_chain(owner, company)] == before


def test_row_security_is_enforced_again_afterwards(owner: Any, company: Company) -> None:
    add_unchained_entry(owner, company, reason="first")

    run_fill()

    owner.execute(
        "SELECT bool_and(relrowsecurity AND relforcerowsecurity) FROM pg_class"
        " WHERE relname = ANY(%s)",
        [list(TABLES)],
    )
    assert owner.fetchone() == (True,)

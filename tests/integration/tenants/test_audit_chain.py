"""The audit log is one chain for each tenant, despite concurrent writers and wrong clocks."""

import secrets
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.snapshot import TenantStatus
from caret.foundation.crypto.canonical_json import to_exact_numbers
from caret.foundation.ids import LookupId, TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import AuditEntry, AuditHead, Tenant
from tenants.security.audit.hash_chain import GENESIS, build_document, hash_document
from tenants.security.audit.operations import record_change, record_read
from tenants.security.authorization.actor import Actor, build_system_actor
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company

TIMEOUT_S = 60.0  # of threads
NUM_FIRST_ENTRIES = 3  # of the company's creation: the tenant and its two members


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE, records_additions=True)


def add_entry(actor: Actor, *, facts: Any = None, now: Any = None) -> None:
    with tenant_scope(actor.tenant_id):
        record_change(
            actor=actor,
            action="test.done",
            target="test:1",
            change=(None, facts),  # before and after
            now=now or timezone.now(),
        )


def list_entries(tenant_id: TenantId) -> list[AuditEntry]:
    with tenant_scope(tenant_id):
        return list(AuditEntry.objects.order_by("sequence"))


def require_unbroken_chain(tenant_id: TenantId) -> list[AuditEntry]:
    """Check that the tenant's entries form one chain up to its head, and return them."""
    entries, last = list_entries(tenant_id), GENESIS
    for number, entry in enumerate(entries, start=1):
        assert entry.sequence == number
        assert bytes(entry.previous_hash) == last
        last = bytes(entry.hash)
        assert hash_document(build_document(entry)) == last
    with tenant_scope(tenant_id):
        head = AuditHead.objects.get()
    assert (head.sequence, bytes(head.hash)) == (len(entries), last)
    return entries


def test_a_tenants_entries_form_a_chain_from_its_creation(company: Company) -> None:
    add_entry(company.administrator.actor)

    entries = require_unbroken_chain(company.tenant_id)
    actions = [entry.action for entry in entries]
    assert actions == ["tenant.created", "member.added", "member.added", "test.done"]


def test_an_actor_is_a_user_a_key_or_the_platform(company: Company) -> None:
    bob = company.administrator
    key = Actor(
        company.tenant_id,
        user_id=None,
        role=Role.AUDITOR,
        address=None,
        request_id="",
        key=LookupId("Ab3dE6gH"),
    )
    for actor in (bob.actor, key, company.platform):
        add_entry(actor)

    person, machine, platform = require_unbroken_chain(company.tenant_id)[-3:]

    assert (person.actor_kind, str(person.actor_id)) == ("user", bob.user_id)
    assert (machine.actor_kind, machine.actor_id, machine.actor_key) == ("key", None, "Ab3dE6gH")
    assert (platform.actor_kind, platform.actor_id, platform.actor_key) == ("platform", None, "")


def run_to_end(threads: list[Thread]) -> None:
    """Start the threads, and wait until all have ended."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert not any(thread.is_alive() for thread in threads)


def test_concurrent_writers_make_one_chain(company: Company) -> None:
    def write() -> None:
        for _ in range(10):
            add_entry(company.platform)
        connection.close()

    threads = [Thread(target=write, daemon=True) for _ in range(4)]
    run_to_end(threads)

    assert len(require_unbroken_chain(company.tenant_id)) == NUM_FIRST_ENTRIES + 4 * 10


def test_two_concurrent_first_entries_make_one_chain() -> None:
    row = Tenant.objects.create(
        slug=f"bare-{secrets.token_hex(4)}",
        name="Bare",
        status=TenantStatus.ACTIVE,
        created_at=timezone.now(),
    )
    empty_tenant_id = TenantId(str(row.id))
    barrier = Barrier(2)

    def write() -> None:
        with tenant_scope(empty_tenant_id):
            barrier.wait(TIMEOUT_S)
            add_entry(build_system_actor(empty_tenant_id))
        connection.close()

    threads = [Thread(target=write, daemon=True) for _ in range(2)]
    run_to_end(threads)

    assert len(require_unbroken_chain(empty_tenant_id)) == 2


def test_a_change_that_fails_leaves_no_gap(company: Company) -> None:
    def add_entry_and_fail() -> None:
        with tenant_scope(company.tenant_id):
            add_entry(company.platform)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        add_entry_and_fail()
    add_entry(company.platform)

    assert len(require_unbroken_chain(company.tenant_id)) == NUM_FIRST_ENTRIES + 1


@pytest.mark.parametrize("hours", [-10_000, 10_000])
def test_a_clock_that_jumps_does_not_break_the_chain(company: Company, hours: int) -> None:
    add_entry(company.platform, now=timezone.now() + timedelta(hours=hours))
    add_entry(company.platform)

    assert len(require_unbroken_chain(company.tenant_id)) == NUM_FIRST_ENTRIES + 2


def test_another_tenants_chain_is_unchanged(company: Company, cast: Cast) -> None:
    before = [entry.hash for entry in list_entries(cast.globex.tenant_id)]

    add_entry(company.platform)

    assert [entry.hash for entry in list_entries(cast.globex.tenant_id)] == before
    with tenant_scope(cast.globex.tenant_id):
        assert not AuditEntry.objects.filter(tenant_id=company.tenant_id).exists()
        assert not AuditHead.objects.filter(tenant_id=company.tenant_id).exists()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tenants_auditentry SET reason = 'another'",
        "TRUNCATE tenants_auditentry",
    ],
)
def test_entries_can_be_neither_changed_nor_truncated(company: Company, statement: str) -> None:
    with (
        pytest.raises(DatabaseError, match="permission denied"),
        tenant_scope(company.tenant_id),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_recent_entries_cannot_be_deleted(company: Company) -> None:
    """The database ignores a deletion of entries younger than 366 days, without an error."""
    before = len(list_entries(company.tenant_id))

    with tenant_scope(company.tenant_id), connection.cursor() as cursor:
        cursor.execute("DELETE FROM tenants_auditentry")

    assert len(list_entries(company.tenant_id)) == before > 0


def test_a_sequence_number_is_unique(company: Company) -> None:
    first = list_entries(company.tenant_id)[0]
    first.pk = (first.tenant_id, company.administrator.user_id)  # any other ID

    with (
        pytest.raises(DatabaseError, match="audit_entry_sequence"),
        tenant_scope(company.tenant_id),
    ):
        first.save(force_insert=True)


def test_a_read_is_recorded_with_its_query(company: Company) -> None:
    actor = company.administrator.actor
    with tenant_scope(company.tenant_id):
        record_read(
            actor=actor,
            action="usage.explained",
            target="request:1",
            filters={"days": 3},
            reason="a complaint",
            now=timezone.now(),
        )

    entry = require_unbroken_chain(company.tenant_id)[-1]
    assert (entry.before, entry.after, entry.reason) == (None, {"days": 3}, "a complaint")
    assert entry.address == actor.address


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab\u00e9\U0001f600", max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(facts=VALUES)
def test_any_recorded_facts_have_the_same_hash_when_read_back(cast: Cast, facts: Any) -> None:
    add_entry(cast.acme.platform, facts=facts)

    with tenant_scope(cast.acme.tenant_id):
        entry = AuditEntry.objects.order_by("-sequence")[0]
    document = build_document(entry)
    assert hash_document(document) == bytes(entry.hash)
    assert document["after"] == to_exact_numbers(facts)

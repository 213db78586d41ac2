"""A check of the stored audit chain finds and names changes that the database's owner made."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from caret.foundation.crypto.signing import SigningKeys
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.models import AuditEntry
from tenants.security.audit import chain_check
from tenants.security.audit.chain_check import ChainCheckResult, check_chain
from tenants.security.audit.operations import record_change
from tenants.security.audit.queries import find_head
from tenants.security.audit.signed_heads import sign_head
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.stack.services import Services

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
# Flips a bit of the first byte of all signatures: in PostgreSQL, the operator # is XOR.
SIGNATURE_FORGERY = (
    "UPDATE tenants_signedaudithead"
    " SET signature = set_byte(signature, 0, get_byte(signature, 0) # 1) WHERE true"
)


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def tamper(services: Services, company: Company) -> Iterator[Callable[[str, str], None]]:
    """Return a function that runs a statement as the owner of the tables, for this tenant only.

    The statement must end with a WHERE clause, to which the function adds the tenant.
    """
    with psycopg.connect(services.owner_database_url, autocommit=True) as owner:

        def run(table: str, statement: str) -> None:
            # With FORCE, row-level security also applies to the owner.
            owner.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
            owner.execute(f"{statement} AND tenant_id = '{company.tenant_id}'")
            owner.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")

        yield run


def add_entries(company: Company, count: int = 1) -> int:
    """Add entries and return the last one's number."""
    with tenant_scope(company.tenant_id):
        for _ in range(count):
            record_change(
                actor=company.platform, action="test", target="t", change=(None, None), now=NOON
            )
        return find_head(tenant_id=company.tenant_id).sequence


def sign_current_head(company: Company) -> None:
    assert sign_head(tenant_id=company.tenant_id, keys=load_signing_keys(), now=NOON)


def verify_chain(company: Company) -> ChainCheckResult:
    """Check the chain as an auditor. The check itself is recorded as an entry of the chain."""
    auditor = company.people[Role.AUDITOR].actor
    return check_chain(actor=auditor, keys=load_signing_keys().public_keys(), now=NOON)


def test_an_unmodified_chain_is_valid(company: Company) -> None:
    add_entries(company, 3)
    sign_current_head(company)
    last = add_entries(company, 2)

    result = verify_chain(company)

    assert result == ChainCheckResult(
        first=1, last=last + 1, num_heads=1, broken_at=None, chain_end=last + 1
    )


def test_each_check_adds_an_entry(company: Company) -> None:
    last = add_entries(company)

    verify_chain(company)

    assert verify_chain(company).last == last + 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tenants_auditentry SET reason = 'nothing' WHERE sequence = {0}",
        "DELETE FROM tenants_auditentry WHERE sequence = {0}",
    ],
)
def test_a_changed_or_deleted_entry_is_named(
    company: Company, tamper: Callable[[str, str], None], change: str
) -> None:
    sequence = add_entries(company)
    add_entries(company, 2)

    tamper("tenants_auditentry", change.format(sequence))

    assert verify_chain(company).broken_at == sequence


def test_truncating_the_chain_contradicts_the_signed_head(
    company: Company, tamper: Callable[[str, str], None]
) -> None:
    last_kept = add_entries(company)
    add_entries(company, 3)
    sign_current_head(company)
    with tenant_scope(company.tenant_id):
        hash_hex = AuditEntry.objects.get(sequence=last_kept).hash.hex()
    deletion = "DELETE FROM tenants_auditentry WHERE sequence > {}"
    head_update = (
        "UPDATE tenants_audithead SET sequence = {}, hash = decode('{}', 'hex') WHERE true"
    )

    tamper("tenants_auditentry", deletion.format(last_kept))
    tamper("tenants_audithead", head_update.format(last_kept, hash_hex))

    assert not verify_chain(company).is_unbroken


def test_a_head_signed_with_another_key_is_detected(company: Company) -> None:
    last = add_entries(company)
    sign_current_head(company)
    foreign_keys = SigningKeys(bytes(32), version=1).public_keys()

    result = check_chain(actor=company.people[Role.AUDITOR].actor, keys=foreign_keys, now=NOON)

    assert result.broken_at == last


def test_a_head_with_a_forged_signature_is_detected(
    company: Company, tamper: Callable[[str, str], None]
) -> None:
    last = add_entries(company)
    sign_current_head(company)

    tamper("tenants_signedaudithead", SIGNATURE_FORGERY)

    assert verify_chain(company).broken_at == last


def test_a_long_chain_is_checked_from_a_signed_head(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_check, "MAX_ENTRIES", 4)
    signed = add_entries(company, 5)
    sign_current_head(company)
    add_entries(company, 2)

    result = verify_chain(company)

    assert (result.first, result.num_heads, result.is_unbroken) == (signed + 1, 1, True)


def test_a_forged_head_before_the_checked_entries_is_named_and_not_counted(
    company: Company, tamper: Callable[[str, str], None]
) -> None:
    signed = add_entries(company, 2)
    sign_current_head(company)
    add_entries(company)
    tamper("tenants_signedaudithead", SIGNATURE_FORGERY)

    result = check_chain(
        actor=company.people[Role.AUDITOR].actor,
        keys=load_signing_keys().public_keys(),
        now=NOON,
        after=signed,
    )

    assert (result.broken_at, result.num_heads) == (signed, 0)


def test_a_long_chain_without_signed_heads_is_checked_in_parts(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_check, "MAX_ENTRIES", 4)
    add_entries(company, 6)
    auditor = company.people[Role.AUDITOR].actor
    keys = load_signing_keys().public_keys()

    first = verify_chain(company)
    second = check_chain(actor=auditor, keys=keys, now=NOON, after=first.last)

    assert (first.first, first.last, first.is_unfinished) == (1, 4, True)
    # The second part has two entries of this test, and the entries of both checks.
    assert (second.first, second.last) == (5, 8)
    assert second.is_unbroken


def test_a_deleted_entry_is_detected_by_a_continued_check(
    company: Company, tamper: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_check, "MAX_ENTRIES", 4)
    add_entries(company, 6)
    tamper("tenants_auditentry", "DELETE FROM tenants_auditentry WHERE sequence = 6")
    auditor = company.people[Role.AUDITOR].actor
    keys = load_signing_keys().public_keys()

    result = check_chain(actor=auditor, keys=keys, now=NOON, after=4)
    later_result = check_chain(actor=auditor, keys=keys, now=NOON, after=6)

    assert (result.broken_at, result.is_unfinished) == (6, False)
    assert later_result.broken_at == 6


def test_a_check_that_takes_too_long_reports_its_position(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_check, "_STEP", 2)
    add_entries(company, 6)
    # The start, and the end of each of the two steps that the time limit allows.
    times = iter([0.0, chain_check.MAX_S / 2, chain_check.MAX_S])

    result = check_chain(
        actor=company.people[Role.AUDITOR].actor,
        keys=load_signing_keys().public_keys(),
        now=NOON,
        clock=lambda: next(times),
    )

    assert (result.last, result.is_unfinished) == (4, True)


def test_a_tenant_has_one_running_check_at_a_time(company: Company) -> None:
    other_company = make_company("hooli", ACME_PEOPLE)

    with (
        redis_lock(connect_to_redis(), f"audit-check:{company.tenant_id}"),
        pytest.raises(Conflict),
    ):
        verify_chain(company)
    assert verify_chain(other_company).is_unbroken
    assert verify_chain(company).is_unbroken


@pytest.mark.parametrize("after", [-1, 10**30])
def test_a_check_from_an_invalid_position_is_rejected(company: Company, after: int) -> None:
    auditor = company.people[Role.AUDITOR].actor

    with pytest.raises(InvalidValue):
        check_chain(actor=auditor, keys=load_signing_keys().public_keys(), now=NOON, after=after)


def test_checking_requires_permission_to_read_the_audit_log(company: Company) -> None:
    with pytest.raises(Forbidden):
        check_chain(actor=company.developer.actor, keys=load_signing_keys().public_keys(), now=NOON)

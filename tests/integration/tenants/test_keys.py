"""Administrators create, list and revoke API keys, and cannot see keys of another tenant."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from caret.contracts.api_key import KeyKind, parse_key
from caret.foundation.ids import LookupId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.identity.api_keys.key_secrets import compute_key_digest
from tenants.identity.api_keys.operations import create_key, revoke_key
from tenants.identity.api_keys.queries import (
    KeyState,
    find_key,
    is_key_active,
    list_keys,
    summarize_keys,
)
from tenants.identity.api_keys.row_writes import MAX_KEYS, REVOKED_KEY_RETENTION
from tenants.identity.api_keys.validation import MAX_NAME_CHARS, KeyRequest
from tenants.models import ApiKey, AuditEntry
from tests.fakes.keys import fill_with_keys
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company, make_key


def make_request(
    owner_id: UserId | None,
    *,
    kind: KeyKind = KeyKind.DEVELOPER,
    name: str = "Laptop",
    expires_at: datetime | None = None,
) -> KeyRequest:
    return KeyRequest(kind=kind, owner_id=owner_id, name=name, expires_at=expires_at)


def read_key_row(company: Company, lookup_id: LookupId) -> ApiKey:
    with tenant_scope(company.tenant_id):
        return ApiKey.objects.get(lookup_id=lookup_id)


def test_only_a_keys_digest_is_stored(cast: Cast) -> None:
    created = make_key(cast.acme, cast.acme.developer)
    key = parse_key(created.text)
    assert key is not None

    row = read_key_row(cast.acme, key.lookup_id)

    assert bytes(row.digest) == compute_key_digest(key, pepper_version=1)
    assert created.text not in str(vars(row))


def test_a_key_is_valid_only_for_its_tenant(cast: Cast) -> None:
    key = parse_key(make_key(cast.acme, cast.acme.developer).text)
    assert key is not None

    assert is_key_active(tenant_id=cast.acme.tenant_id, key=key, now=timezone.now())
    assert not is_key_active(tenant_id=cast.globex.tenant_id, key=key, now=timezone.now())


def test_the_representation_of_a_created_key_hides_its_secret(cast: Cast) -> None:
    created = make_key(cast.acme, cast.acme.developer)

    assert created.text not in repr(created)


def test_creating_a_key_is_audited_without_secrets(cast: Cast) -> None:
    alice = cast.acme.administrator

    created = create_key(
        actor=alice.actor, new=make_request(cast.acme.developer.user_id), now=timezone.now()
    )

    with tenant_scope(cast.acme.tenant_id):
        entry = AuditEntry.objects.get(target=f"key:{created.key.lookup_id}")
    assert (entry.action, str(entry.actor_id)) == ("key.created", alice.user_id)
    assert entry.address == "192.0.2.7"
    assert entry.before is None
    # The secret has 43 characters, and the checksum after it has 6.
    assert created.text[-49:] not in str(vars(entry))


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
def test_creating_keys_requires_permission(cast: Cast, role: Role) -> None:
    person = cast.acme.people[role]

    with pytest.raises(Forbidden):
        create_key(actor=person.actor, new=make_request(person.user_id), now=timezone.now())


def test_a_key_for_another_tenants_member_is_refused(cast: Cast) -> None:
    bob = cast.globex.administrator

    with pytest.raises(InvalidValue) as exc_info:
        create_key(
            actor=cast.acme.administrator.actor, new=make_request(bob.user_id), now=timezone.now()
        )

    assert exc_info.value.field == "owner_id"


def test_a_service_key_has_no_owner(cast: Cast) -> None:
    actor = cast.acme.administrator.actor

    created = create_key(
        actor=actor, new=make_request(None, kind=KeyKind.SERVICE), now=timezone.now()
    )

    assert created.text.startswith("cpk_svc_")
    assert created.key.owner_email is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "x" * (MAX_NAME_CHARS + 1)}, "name"),
        ({"name": "line\nbreak"}, "name"),
        ({"kind": KeyKind.SERVICE}, "owner_id"),  # a service key must not have an owner
        ({"expires_at": timezone.now() - timedelta(seconds=1)}, "expires_at"),
        ({"expires_at": timezone.now() + timedelta(days=4_000)}, "expires_at"),  # over ten years
    ],
)
def test_the_error_about_an_invalid_key_request_names_the_field(
    cast: Cast, change: dict[str, object], field: str
) -> None:
    request = make_request(cast.acme.developer.user_id, **change)  # type: ignore[arg-type]

    with pytest.raises(InvalidValue) as exc_info:
        create_key(actor=cast.acme.administrator.actor, new=request, now=timezone.now())

    assert exc_info.value.field == field


def test_a_revoked_key_is_invalid(cast: Cast) -> None:
    created = make_key(cast.acme, cast.acme.developer)
    key = parse_key(created.text)
    assert key is not None

    revoked_key = revoke_key(
        actor=cast.acme.administrator.actor,
        lookup_id=key.lookup_id,
        reason="lost",
        now=timezone.now(),
    )

    assert revoked_key.state is KeyState.REVOKED
    assert not is_key_active(tenant_id=cast.acme.tenant_id, key=key, now=timezone.now())


def test_revoking_twice_keeps_the_first_timestamp_and_audit_entry(cast: Cast) -> None:
    actor = cast.acme.administrator.actor
    lookup_id = make_key(cast.acme, cast.acme.developer).key.lookup_id
    first = revoke_key(actor=actor, lookup_id=lookup_id, reason="lost", now=timezone.now())

    second = revoke_key(actor=actor, lookup_id=lookup_id, reason="again", now=timezone.now())

    with tenant_scope(cast.acme.tenant_id):
        entries = AuditEntry.objects.filter(target=f"key:{lookup_id}", action="key.revoked")
        assert [entry.reason for entry in entries] == ["lost"]
    assert second.revoked_at == first.revoked_at


def test_revoking_locks_the_tenant_before_the_key(cast: Cast) -> None:
    """Every change of a key locks the tenant first; otherwise, two changes could deadlock.

    The update of the tenant's row is the lock.
    """
    created = make_key(cast.acme, cast.acme.developer)

    with CaptureQueriesContext(connection) as captured:
        revoke_key(
            actor=cast.acme.administrator.actor,
            lookup_id=created.key.lookup_id,
            reason="",
            now=timezone.now(),
        )

    statements = [query["sql"] for query in captured]
    tenant_updates = [
        index for index, sql in enumerate(statements) if 'UPDATE "tenants_tenant"' in sql
    ]
    key_updates = [
        index for index, sql in enumerate(statements) if 'UPDATE "tenants_apikey"' in sql
    ]
    assert tenant_updates[0] < key_updates[0]


def test_another_tenant_can_neither_revoke_nor_detect_a_key(cast: Cast) -> None:
    lookup_id = make_key(cast.acme, cast.acme.developer).key.lookup_id

    # The error about an existing key is the same as that about a key that does not exist.
    for requested_id in (lookup_id, LookupId("nothing1")):
        with pytest.raises(NotFound, match="This key does not exist"):
            revoke_key(
                actor=cast.globex.administrator.actor,
                lookup_id=requested_id,
                reason="",
                now=timezone.now(),
            )
    assert read_key_row(cast.acme, lookup_id).revoked_at is None


def test_keys_are_listed_newest_first_in_pages() -> None:
    company = make_company("initech", GLOBEX_PEOPLE)
    names = ["one", "two", "three"]
    for name in names:
        make_key(company, company.developer, name=name)
    actor, now = company.administrator.actor, timezone.now()

    first = list_keys(actor=actor, limit=2, cursor=None, now=now)
    second = list_keys(actor=actor, limit=2, cursor=first.next_cursor, now=now)

    assert [key.name for key in (*first.rows, *second.rows)] == names[::-1]
    assert second.next_cursor is None
    assert summarize_keys(actor=actor, limit=2, now=now).total == 3


def test_a_developer_sees_only_their_own_keys() -> None:
    company = make_company("initech", GLOBEX_PEOPLE)
    own_key = make_key(company, company.developer)
    other_key = make_key(company, company.administrator)
    actor, now = company.developer.actor, timezone.now()

    page = list_keys(actor=actor, limit=10, cursor=None, now=now)

    assert [key.lookup_id for key in page.rows] == [own_key.key.lookup_id]
    with pytest.raises(NotFound):
        find_key(actor=actor, lookup_id=other_key.key.lookup_id, now=now)


def test_the_billing_role_cannot_list_keys(cast: Cast) -> None:
    with pytest.raises(Forbidden):
        list_keys(
            actor=cast.acme.people[Role.BILLING].actor, limit=1, cursor=None, now=timezone.now()
        )


def test_an_expired_key_has_the_state_expired(cast: Cast) -> None:
    now = timezone.now()
    request = make_request(cast.acme.developer.user_id, expires_at=now + timedelta(hours=1))
    actor = cast.acme.administrator.actor
    lookup_id = create_key(actor=actor, new=request, now=now).key.lookup_id

    expired_key = find_key(actor=actor, lookup_id=lookup_id, now=now + timedelta(hours=1))

    assert expired_key.state is KeyState.EXPIRED


def test_the_number_of_keys_per_tenant_is_limited() -> None:
    company = make_company("initech", GLOBEX_PEOPLE)
    fill_with_keys(company, MAX_KEYS - 1)
    last_key = make_key(company, company.developer)

    with pytest.raises(Conflict, match="5000 keys"):
        make_key(company, company.developer)

    revoke_key(
        actor=company.administrator.actor,
        lookup_id=last_key.key.lookup_id,
        reason="",
        now=timezone.now(),
    )
    with pytest.raises(Conflict):  # the revoked key still counts: snapshots contain it
        make_key(company, company.developer)


def test_keys_revoked_long_ago_do_not_count_against_the_limit() -> None:
    company = make_company("initech", GLOBEX_PEOPLE)
    fill_with_keys(
        company, MAX_KEYS, revoked_at=timezone.now() - REVOKED_KEY_RETENTION - timedelta(minutes=1)
    )

    assert make_key(company, company.developer).key.name == "Laptop"

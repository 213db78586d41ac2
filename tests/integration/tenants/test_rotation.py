"""Rotation of API keys, keys unused for long, and the tenant's policy rules about both."""

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from structlog.testing import capture_logs

from caret.contracts.api_key import KeyKind, ParsedKey, parse_key
from caret.contracts.snapshot import SNAPSHOTS, TenantSnapshot, decode_snapshot
from caret.foundation.ids import LookupId, TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.api_keys import operations
from tenants.identity.api_keys.authentication import authenticate_key
from tenants.identity.api_keys.operations import (
    MAX_OVERLAP,
    KeyRotation,
    create_key,
    revoke_idle_keys,
    revoke_key,
    rotate_key,
)
from tenants.identity.api_keys.queries import KeyState, find_key, is_key_active, list_idle_keys
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.validation import KeyRequest
from tenants.models import ApiKey, AuditEntry
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tests.fixtures.companies import (
    GLOBEX_PEOPLE,
    Cast,
    Company,
    make_company,
    make_key,
    make_service_key,
)

DAY = timedelta(days=1)
ONE_DAY_OVERLAP = KeyRotation(overlap=DAY)


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def parse_valid_key(text: str) -> ParsedKey:
    key = parse_key(text)
    assert key is not None
    return key


def is_valid(company: Company, text: str, at: datetime) -> bool:
    return is_key_active(tenant_id=company.tenant_id, key=parse_valid_key(text), now=at)


def read_published(company: Company) -> TenantSnapshot:
    data = connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data)


def change_policy(company: Company, **fields: Any) -> None:
    document = serialize_policy(DEFAULT_POLICY) | fields
    set_policy(actor=company.platform, document=document, reason="test", now=timezone.now())


def backdate(company: Company, lookup_id: LookupId, **fields: datetime | None) -> None:
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(lookup_id=lookup_id).update(**fields)


def test_the_old_secret_is_valid_until_the_end_of_the_overlap(company: Company) -> None:
    old, now = make_key(company, company.developer), timezone.now()

    new = rotate_key(
        actor=company.administrator.actor,
        lookup_id=old.key.lookup_id,
        rotation=ONE_DAY_OVERLAP,
        now=now,
    )

    assert new.key.lookup_id == old.key.lookup_id
    assert new.text != old.text
    assert is_valid(company, old.text, now + DAY - timedelta(seconds=1))
    assert not is_valid(company, old.text, now + DAY)
    assert is_valid(company, new.text, now + DAY)


def test_both_secrets_are_published_as_one_key(company: Company) -> None:
    old = make_key(company, company.developer)

    rotate_key(
        actor=company.platform,
        lookup_id=old.key.lookup_id,
        rotation=ONE_DAY_OVERLAP,
        now=timezone.now(),
    )

    first, second = read_published(company).credentials
    assert first.key_id == second.key_id
    assert first.digest != second.digest
    # Only the old secret expires.
    expiring = [credential for credential in (first, second) if credential.expires_at_ms]
    assert len(expiring) == 1


def test_a_second_rotation_ends_the_oldest_secret(company: Company) -> None:
    oldest, now = make_key(company, company.developer), timezone.now()
    arguments: Any = {"actor": company.platform, "lookup_id": oldest.key.lookup_id, "now": now}
    old = rotate_key(rotation=ONE_DAY_OVERLAP, **arguments)

    new = rotate_key(rotation=ONE_DAY_OVERLAP, **arguments)

    assert [is_valid(company, created.text, now) for created in (oldest, old, new)] == [
        False,
        True,
        True,
    ]


def test_without_overlap_the_old_secret_ends_immediately(company: Company) -> None:
    old, now = make_key(company, company.developer), timezone.now()

    rotate_key(
        actor=company.platform,
        lookup_id=old.key.lookup_id,
        rotation=KeyRotation(overlap=timedelta(0)),
        now=now,
    )

    assert not is_valid(company, old.text, now)


def test_revoking_ends_both_secrets(company: Company) -> None:
    old, now = make_key(company, company.developer), timezone.now()
    actor, lookup_id = company.platform, old.key.lookup_id
    new = rotate_key(actor=actor, lookup_id=lookup_id, rotation=ONE_DAY_OVERLAP, now=now)

    revoke_key(actor=actor, lookup_id=lookup_id, reason="lost", now=now)

    assert not is_valid(company, old.text, now)
    assert not is_valid(company, new.text, now)
    assert all(
        credential.revoked_at_ms is not None for credential in read_published(company).credentials
    )


def test_a_rotation_is_audited_without_secrets(company: Company) -> None:
    old, now = make_key(company, company.developer), timezone.now()

    new = rotate_key(
        actor=company.administrator.actor,
        lookup_id=old.key.lookup_id,
        rotation=KeyRotation(overlap=DAY, reason="yearly"),
        now=now,
    )

    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="key.rotated")
    assert (entry.target, entry.reason) == (f"key:{old.key.lookup_id}", "yearly")
    assert entry.after is not None
    assert entry.after["previous_ends_at"] == (now + DAY).isoformat()
    num_public = len("cpk_live_") + len(old.key.lookup_id)  # the rest is secret
    assert not any(created.text[num_public:] in str(vars(entry)) for created in (old, new))


@pytest.mark.parametrize("overlap", [-DAY, MAX_OVERLAP + timedelta(seconds=1)])
def test_an_invalid_overlap_is_refused(company: Company, overlap: timedelta) -> None:
    old = make_key(company, company.developer)

    with pytest.raises(InvalidValue) as exc_info:
        rotate_key(
            actor=company.platform,
            lookup_id=old.key.lookup_id,
            rotation=KeyRotation(overlap=overlap),
            now=timezone.now(),
        )

    assert exc_info.value.field == "overlap_hours"


def test_a_revoked_key_cannot_be_rotated(company: Company) -> None:
    old, now = make_key(company, company.developer), timezone.now()
    actor, lookup_id = company.platform, old.key.lookup_id
    revoke_key(actor=actor, lookup_id=lookup_id, reason="", now=now)

    with pytest.raises(Conflict):
        rotate_key(actor=actor, lookup_id=lookup_id, rotation=ONE_DAY_OVERLAP, now=now)


def test_another_tenant_cannot_rotate_a_key(company: Company, cast: Cast) -> None:
    old, now = make_key(company, company.developer), timezone.now()

    with pytest.raises(NotFound):
        rotate_key(
            actor=cast.globex.administrator.actor,
            lookup_id=old.key.lookup_id,
            rotation=ONE_DAY_OVERLAP,
            now=now,
        )

    assert is_valid(company, old.text, now)


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
def test_rotating_keys_requires_permission(cast: Cast, role: Role) -> None:
    old = make_key(cast.acme, cast.acme.developer)

    with pytest.raises(Forbidden):
        rotate_key(
            actor=cast.acme.people[role].actor,
            lookup_id=old.key.lookup_id,
            rotation=ONE_DAY_OVERLAP,
            now=timezone.now(),
        )


def test_a_key_cannot_rotate_itself(company: Company) -> None:
    service_key, now = make_service_key(company, KeyScope.KEYS_WRITE), timezone.now()
    actor = authenticate_key(text=service_key.text, address=None, now=now)

    with pytest.raises(Forbidden, match="itself"):
        rotate_key(
            actor=actor, lookup_id=service_key.key.lookup_id, rotation=ONE_DAY_OVERLAP, now=now
        )


def test_an_old_secret_can_neither_create_nor_rotate_keys(company: Company) -> None:
    old, now = make_service_key(company, KeyScope.KEYS_WRITE), timezone.now()
    other_key = make_service_key(company, KeyScope.KEYS_READ).key
    rotate_key(
        actor=company.platform, lookup_id=old.key.lookup_id, rotation=ONE_DAY_OVERLAP, now=now
    )
    actor = authenticate_key(text=old.text, address=None, now=now)
    request = KeyRequest(
        kind=KeyKind.SERVICE,
        owner_id=None,
        name="CI",
        expires_at=None,
        scopes=frozenset({KeyScope.KEYS_READ}),
    )

    with pytest.raises(Forbidden, match="old secret"):
        create_key(actor=actor, new=request, now=now)
    with pytest.raises(Forbidden, match="old secret"):
        rotate_key(actor=actor, lookup_id=other_key.lookup_id, rotation=ONE_DAY_OVERLAP, now=now)


def test_the_new_secret_can_create_keys_during_the_overlap(company: Company) -> None:
    old, now = make_service_key(company, KeyScope.KEYS_WRITE), timezone.now()
    new = rotate_key(
        actor=company.platform, lookup_id=old.key.lookup_id, rotation=ONE_DAY_OVERLAP, now=now
    )
    actor = authenticate_key(text=new.text, address=None, now=now)
    request = KeyRequest(
        kind=KeyKind.SERVICE,
        owner_id=None,
        name="CI",
        expires_at=None,
        scopes=frozenset({KeyScope.KEYS_READ}),
    )

    assert create_key(actor=actor, new=request, now=now).key.name == "CI"


def test_a_key_cannot_rotate_a_key_with_more_permissions(company: Company) -> None:
    service_key, now = make_service_key(company, KeyScope.KEYS_WRITE), timezone.now()
    stronger_key = make_service_key(company, KeyScope.POLICIES_WRITE)
    actor = authenticate_key(text=service_key.text, address=None, now=now)

    with pytest.raises(Forbidden):
        rotate_key(
            actor=actor, lookup_id=stronger_key.key.lookup_id, rotation=ONE_DAY_OVERLAP, now=now
        )


def test_the_policy_limits_the_lifetime_of_new_secrets(company: Company) -> None:
    old, now = make_key(company, company.developer), timezone.now()
    change_policy(company, max_key_lifetime_days=30)
    arguments: Any = {"actor": company.platform, "lookup_id": old.key.lookup_id, "now": now}
    new = KeyRequest(kind=old.key.kind, owner_id=old.key.owner_id, name="x", expires_at=None)

    with pytest.raises(InvalidValue):
        create_key(actor=company.platform, new=new, now=now)
    with pytest.raises(InvalidValue):
        rotate_key(rotation=KeyRotation(overlap=DAY, expires_at=now + 31 * DAY), **arguments)
    created = rotate_key(rotation=KeyRotation(overlap=DAY, expires_at=now + 30 * DAY), **arguments)

    assert created.key.expires_at == now + 30 * DAY


def test_only_unused_valid_keys_are_listed_as_idle(company: Company) -> None:
    now, actor = timezone.now(), company.administrator.actor
    long_ago = now - 100 * DAY
    unused, used_key, rotated, ended_key = (
        make_key(company, company.developer).key for _ in range(4)
    )
    for key in (unused, used_key, rotated, ended_key):
        backdate(company, key.lookup_id, created_at=long_ago)
    backdate(company, used_key.lookup_id, last_used_at=now - DAY)
    backdate(company, rotated.lookup_id, issued_at=now - DAY)
    backdate(company, ended_key.lookup_id, expires_at=now - DAY)

    page = list_idle_keys(actor=actor, unused_for=90 * DAY, limit=10, cursor=None, now=now)

    assert [key.lookup_id for key in page.rows] == [unused.lookup_id]


def test_idle_keys_are_revoked_if_the_policy_requires_it(company: Company, cast: Cast) -> None:
    now = timezone.now()
    created = make_key(company, company.developer).key
    backdate(company, created.lookup_id, created_at=now - 91 * DAY)

    assert revoke_idle_keys(tenant_id=company.tenant_id, now=now) == []
    change_policy(company, revoke_idle_keys_after_days=90)
    assert revoke_idle_keys(tenant_id=company.tenant_id, now=now) == [created.lookup_id]

    view = find_key(actor=company.platform, lookup_id=created.lookup_id, now=now)
    assert view.state is KeyState.REVOKED
    assert revoke_idle_keys(tenant_id=company.tenant_id, now=now) == []
    assert revoke_idle_keys(tenant_id=cast.globex.tenant_id, now=now) == []


def test_idle_keys_are_revoked_even_if_another_tenant_fails(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, broken = timezone.now(), TenantId(str(uuid.uuid4()))  # no policy, so reading it fails
    created = make_key(company, company.developer).key
    backdate(company, created.lookup_id, created_at=now - 91 * DAY)
    change_policy(company, revoke_idle_keys_after_days=90)
    tenants = {"broken": broken, "initech": company.tenant_id}
    monkeypatch.setattr(operations, "list_tenants", lambda: tenants)

    with capture_logs() as logs:
        operations.revoke_all_idle_keys(now=now)

    view = find_key(actor=company.platform, lookup_id=created.lookup_id, now=now)
    assert view.state is KeyState.REVOKED
    assert [entry["tenant_id"] for entry in logs if entry["log_level"] == "error"] == [broken]

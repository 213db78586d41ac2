"""Authentication of a service key before its tenant is known."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from caret.contracts.api_key import KeyKind, generate_key
from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import LookupId
from caret.foundation.postgres.tenant_scope import key_lookup_scope, tenant_scope
from tenants.base.errors import Forbidden, Unauthenticated
from tenants.base.permissions import Permission
from tenants.identity.api_keys.authentication import authenticate_key
from tenants.identity.api_keys.operations import create_key, revoke_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.members.tenant_status import set_status
from tenants.models import ApiKey, AuditEntry, Membership, PolicyVersion
from tenants.security.authorization.actor import Actor, ActorKind
from tests.fixtures.companies import (
    GLOBEX_PEOPLE,
    Cast,
    Company,
    make_company,
    make_key,
    make_service_key,
)

OFFICE = "192.0.2.7"  # the address of a caller


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def authenticate(text: str, *, address: str | None = OFFICE, **fields: Any) -> Actor:
    return authenticate_key(text=text, address=address, **({"now": timezone.now()} | fields))


def get_refusal_code(text: str, **fields: Any) -> str:
    with pytest.raises(Unauthenticated) as exc_info:
        authenticate(text, **fields)
    return exc_info.value.code


def test_a_service_key_acts_for_its_tenant_and_for_no_user(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.USAGE_READ)

    actor = authenticate(service_key.text)

    assert (actor.tenant_id, actor.user_id, actor.key) == (
        company.tenant_id,
        None,
        service_key.key.lookup_id,
    )
    assert actor.kind is ActorKind.KEY
    assert [permission for permission in Permission if actor.has_permission(permission)] == [
        Permission.READ_USAGE
    ]


def test_an_action_outside_of_the_scopes_is_refused(company: Company) -> None:
    actor = authenticate(make_service_key(company, KeyScope.USAGE_READ).text)

    with pytest.raises(Forbidden, match=r"scope .*keys\.create"):
        actor.require(Permission.CREATE_KEYS)
    with pytest.raises(Forbidden):
        actor.require_platform()


def test_the_last_use_is_recorded(company: Company) -> None:
    service_key, now = make_service_key(company, KeyScope.USAGE_READ), timezone.now()

    authenticate(service_key.text, now=now)

    with tenant_scope(company.tenant_id):
        assert ApiKey.objects.get(lookup_id=service_key.key.lookup_id).last_used_at == now


def test_changes_by_a_key_are_audited_with_its_lookup_id(company: Company) -> None:
    creating_key = make_service_key(company, KeyScope.KEYS_WRITE)
    actor = authenticate(creating_key.text)
    request = KeyRequest(
        KeyKind.SERVICE,
        owner_id=None,
        name="CI",
        expires_at=None,
        scopes=frozenset({KeyScope.KEYS_READ}),
    )

    created = create_key(actor=actor, new=request, now=timezone.now())

    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(target=f"key:{created.key.lookup_id}")
    assert (entry.actor_kind, entry.actor_id, entry.actor_key) == (
        "key",
        None,
        creating_key.key.lookup_id,
    )


def test_a_key_cannot_create_a_key_with_more_permissions(company: Company) -> None:
    actor = authenticate(make_service_key(company, KeyScope.KEYS_WRITE).text)
    request = KeyRequest(
        KeyKind.SERVICE,
        owner_id=None,
        name="CI",
        expires_at=None,
        scopes=frozenset({KeyScope.POLICIES_WRITE}),
    )

    with pytest.raises(Forbidden):
        create_key(actor=actor, new=request, now=timezone.now())


# After its prefix, a key has 57 characters; here, the checksum at the end is wrong.
@pytest.mark.parametrize("text", ["", "x", "cpk_svc_" + "x" * 57, "cpk_svc_\x00"])
def test_a_malformed_key_is_invalid(company: Company, text: str) -> None:
    assert get_refusal_code(text) == "invalid_api_key"


def test_an_unknown_key_is_invalid(company: Company) -> None:
    assert get_refusal_code(generate_key(KeyKind.SERVICE).text) == "invalid_api_key"


def test_a_wrong_secret_for_a_known_lookup_id_is_invalid(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.USAGE_READ)

    forged = generate_key(KeyKind.SERVICE, lookup_id=service_key.key.lookup_id)

    assert get_refusal_code(forged.text) == "invalid_api_key"


def test_a_developer_key_has_the_wrong_kind(company: Company) -> None:
    assert get_refusal_code(make_key(company, company.developer).text) == "wrong_api_key_kind"


def test_a_revoked_key_is_reported_as_revoked(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.USAGE_READ)
    revoke_key(
        actor=company.platform, lookup_id=service_key.key.lookup_id, reason="", now=timezone.now()
    )

    assert get_refusal_code(service_key.text) == "revoked_api_key"


def test_an_expired_key_is_reported_as_expired(company: Company) -> None:
    expires_at = timezone.now() + timedelta(hours=1)
    service_key = make_service_key(company, KeyScope.USAGE_READ, expires_at=expires_at)

    assert authenticate(service_key.text).key == service_key.key.lookup_id
    assert get_refusal_code(service_key.text, now=expires_at) == "expired_api_key"


@pytest.mark.parametrize("address", ["198.51.100.7", None, "", "x"])
def test_a_key_from_a_disallowed_network_is_reported_as_invalid(
    company: Company, address: str | None
) -> None:
    """A caller in another network must not learn that the key was revoked."""
    service_key = make_service_key(company, KeyScope.USAGE_READ, networks=("192.0.2.0/24",))
    actor = authenticate(service_key.text, address="::ffff:192.0.2.9")  # an IPv4-mapped address
    assert actor.key == service_key.key.lookup_id

    revoke_key(
        actor=company.platform, lookup_id=service_key.key.lookup_id, reason="", now=timezone.now()
    )

    assert get_refusal_code(service_key.text, address=address) == "invalid_api_key"


def test_a_suspended_tenants_key_is_refused(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.USAGE_READ)
    set_status(
        actor=company.platform,
        status=TenantStatus.SUSPENDED,
        reason="unpaid",
        now=timezone.now(),
    )

    assert get_refusal_code(service_key.text) == "tenant_suspended"


def test_the_secret_distinguishes_keys_of_two_tenants_with_the_same_lookup_id(
    company: Company, cast: Cast
) -> None:
    our_key = make_service_key(company, KeyScope.USAGE_READ)
    their_key = make_service_key(cast.globex, KeyScope.USAGE_READ)
    with tenant_scope(cast.globex.tenant_id):
        ApiKey.objects.filter(lookup_id=their_key.key.lookup_id).update(
            lookup_id=our_key.key.lookup_id
        )

    assert authenticate(our_key.text).tenant_id == company.tenant_id
    # The text of their key contains the old lookup ID.
    assert get_refusal_code(their_key.text) == "invalid_api_key"


def test_a_lookup_scope_shows_only_the_requested_key(company: Company) -> None:
    """In a lookup scope, a query reads keys by their lookup ID before their tenant is known."""
    service_key = make_service_key(company, KeyScope.USAGE_READ)
    make_key(company, company.developer)

    with key_lookup_scope(service_key.key.lookup_id):
        assert [key.lookup_id for key in ApiKey.objects.all()] == [service_key.key.lookup_id]
        assert ApiKey.objects.update(name="Taken") == 0
        assert list(Membership.objects.all()) == []
    with key_lookup_scope(LookupId("00000000")):
        assert list(ApiKey.objects.all()) == []


def test_a_lookup_scope_ends_with_its_block(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.USAGE_READ)
    other_company = make_company("globex", GLOBEX_PEOPLE)
    with key_lookup_scope(service_key.key.lookup_id):
        pass

    with tenant_scope(other_company.tenant_id):
        assert list(ApiKey.objects.all()) == []
        assert PolicyVersion.objects.count() == 1


def test_a_keys_permissions_follow_its_grant(company: Company) -> None:
    actor = authenticate(make_service_key(company, KeyScope.USAGE_READ).text)
    assert actor.grant is not None

    stronger = replace(actor, grant=replace(actor.grant, permissions=frozenset(Permission)))
    weaker = replace(actor, grant=replace(actor.grant, permissions=frozenset()))

    assert stronger.has_permission(Permission.WRITE_POLICY)
    assert not weaker.has_permission(Permission.READ_USAGE)

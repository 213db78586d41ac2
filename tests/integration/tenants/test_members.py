"""Tenants, users and memberships: valid values, unique names, permissions and lookups."""

import secrets

import pytest
from django.contrib.auth import authenticate
from django.db import IntegrityError, transaction
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.identity.members.operations import (
    MAX_NAME_CHARS,
    add_member,
    create_tenant,
    create_user,
    is_slug,
)
from tenants.models import AuditEntry, Tenant, User
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import (
    find_memberships,
    find_tenant,
    find_user,
    list_members,
)
from tests.fixtures.companies import PASSWORD, Cast


def test_a_user_signs_in_with_their_address_in_any_case(cast: Cast) -> None:
    alice = cast.acme.administrator

    user = authenticate(username=f" {alice.email.upper()} ", password=PASSWORD)

    assert user is not None
    assert str(user.pk) == alice.user_id


def test_a_wrong_password_is_refused(cast: Cast) -> None:
    assert authenticate(username=cast.acme.administrator.email, password="wrong") is None


def test_passwords_are_hashed_with_argon2(cast: Cast) -> None:
    user = User.objects.get(id=cast.acme.administrator.user_id)

    assert user.password.startswith("argon2$argon2id$")


def test_an_address_is_unique_whatever_its_case(cast: Cast) -> None:
    with pytest.raises(Conflict):
        create_user(
            email=cast.acme.administrator.email.upper(),
            name="",
            password=PASSWORD,
            now=timezone.now(),
        )


def test_the_database_refuses_addresses_with_upper_case_letters() -> None:
    with pytest.raises(IntegrityError, match="user_email_lower"), transaction.atomic():
        User.objects.create(email="Alice@x.example", name="", created_at=timezone.now())


@pytest.mark.parametrize(
    ("email", "password", "field"),
    [
        ("nobody", PASSWORD, "email"),
        ("", PASSWORD, "email"),
        ("x@y.example", "short", "password"),
        ("x@y.example", "password1234", "password"),
    ],
)
def test_a_user_with_a_malformed_address_or_weak_password_is_refused(
    email: str, password: str, field: str
) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        create_user(email=email, name="", password=password, now=timezone.now())

    assert exc_info.value.field == field


@pytest.mark.parametrize("slug", ["", "Acme", "9lives", "a_b", "acme-", "x" * 64, "ac me"])
def test_a_malformed_slug_is_refused(slug: str) -> None:
    with pytest.raises(InvalidValue, match="Enter 1 to 63") as exc_info:
        create_tenant(slug=slug, name="Acme", now=timezone.now())

    assert exc_info.value.field == "slug"


def test_a_slug_has_1_to_63_characters() -> None:
    longest = "x" * 55 + secrets.token_hex(4)  # 55 + 8 = 63 characters

    tenant_id = create_tenant(slug=longest, name="Acme", now=timezone.now())

    assert find_tenant(slug=longest) == tenant_id
    assert is_slug("x")


def test_the_error_names_a_letter_that_only_looks_latin() -> None:
    with pytest.raises(InvalidValue, match="CYRILLIC SMALL LETTER A"):
        create_tenant(slug="\u0430cme", name="Acme", now=timezone.now())


def test_a_slug_that_could_impersonate_the_platform_is_reserved() -> None:
    with pytest.raises(InvalidValue, match="admin is reserved"):
        create_tenant(slug="admin", name="Acme", now=timezone.now())


@pytest.mark.parametrize(
    "name", ["", "  ", "x" * (MAX_NAME_CHARS + 1), "Acme\nBcc: all@acme.example"]
)
def test_a_tenants_name_is_one_short_line(name: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        create_tenant(slug=f"acme-{secrets.token_hex(4)}", name=name, now=timezone.now())

    assert exc_info.value.field == "name"


def test_a_slug_is_unique(cast: Cast) -> None:
    with pytest.raises(Conflict):
        create_tenant(slug=cast.acme.slug, name="Acme", now=timezone.now())


def test_a_member_finds_only_their_own_tenant(cast: Cast) -> None:
    memberships = find_memberships(user_id=cast.acme.developer.user_id)

    assert [(row.slug, row.role) for row in memberships] == [(cast.acme.slug, Role.DEVELOPER)]


def test_a_user_of_two_tenants_finds_both_sorted_by_name() -> None:
    now, suffix = timezone.now(), secrets.token_hex(4)
    user_id = create_user(email=f"two@{suffix}.example", name="Two", password=PASSWORD, now=now)
    for name in ("beta", "alpha"):
        tenant_id = create_tenant(slug=f"{name}-{suffix}", name=name, now=now)
        actor = build_system_actor(tenant_id)
        add_member(actor=actor, user_id=user_id, role=Role.AUDITOR, now=now)

    memberships = find_memberships(user_id=user_id)

    assert [row.name for row in memberships] == ["alpha", "beta"]


def test_a_closed_tenant_is_not_listed() -> None:
    now, suffix = timezone.now(), secrets.token_hex(4)
    user_id = create_user(email=f"one@{suffix}.example", name="One", password=PASSWORD, now=now)
    tenant_id = create_tenant(slug=f"gone-{suffix}", name="Gone", now=now)
    add_member(actor=build_system_actor(tenant_id), user_id=user_id, role=Role.OWNER, now=now)
    Tenant.objects.filter(id=tenant_id).update(status=TenantStatus.CLOSED)

    assert find_memberships(user_id=user_id) == []


def test_the_list_of_members_contains_only_the_tenants_own(cast: Cast) -> None:
    members = list_members(tenant_id=cast.globex.tenant_id)

    assert [member.role for member in members] == [Role.ADMINISTRATOR, Role.DEVELOPER]


def test_a_second_membership_is_a_conflict(cast: Cast) -> None:
    with pytest.raises(Conflict):
        add_member(
            actor=cast.acme.platform,
            user_id=cast.acme.developer.user_id,
            role=Role.OWNER,
            now=timezone.now(),
        )


def test_a_developer_cannot_add_members(cast: Cast) -> None:
    with pytest.raises(Forbidden):
        add_member(
            actor=cast.acme.developer.actor,
            user_id=cast.globex.developer.user_id,
            role=Role.OWNER,
            now=timezone.now(),
        )


def test_a_new_tenants_audit_log_starts_with_its_creation(cast: Cast) -> None:
    with tenant_scope(cast.acme.tenant_id):
        first = AuditEntry.objects.order_by("sequence")[0]

    assert first.action == "tenant.created"


def test_unknown_tenants_and_users_are_not_found() -> None:
    assert find_tenant(slug="nobody") is None
    assert find_user(email="nobody@nowhere.example") is None


def test_a_name_with_a_nul_character_is_rejected() -> None:
    slug = f"nul-{secrets.token_hex(4)}"

    with pytest.raises(InvalidValue) as tenant_error:
        create_tenant(slug=slug, name="a\0b", now=timezone.now())
    with pytest.raises(InvalidValue) as user_error:
        create_user(email=f"{slug}@x.example", name="a\0b", password=PASSWORD, now=timezone.now())

    assert (tenant_error.value.field, user_error.value.field) == ("name", "name")

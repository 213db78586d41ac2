"""Unowned keys: service keys whose text was shown to a user who may no longer create keys.

They keep working, and are listed.
"""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import LookupId
from tenants.base.permissions import Role
from tenants.identity.api_keys.authentication import authenticate_key
from tenants.identity.api_keys.operations import (
    CreatedKey,
    KeyRotation,
    create_key,
    revoke_key,
    rotate_key,
)
from tenants.identity.api_keys.queries import find_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.unowned import list_unowned_keys
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.security.authorization.actor import Actor
from tests.fixtures.companies import Cast, Company, Person, make_company
from tests.fixtures.users import make_colleague

SCOPES = frozenset({KeyScope.KEYS_WRITE, KeyScope.INFERENCE})


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def owner(company: Company) -> Person:
    return company.people[Role.OWNER]


@pytest.fixture
def alice(company: Company) -> Person:
    return make_colleague(company, Role.ADMINISTRATOR)


def make_service_key_as(actor: Actor, name: str = "CI") -> CreatedKey:
    request = KeyRequest(KeyKind.SERVICE, owner_id=None, name=name, expires_at=None, scopes=SCOPES)
    return create_key(actor=actor, new=request, now=timezone.now())


def list_unowned(actor: Actor) -> list[LookupId]:
    page = list_unowned_keys(actor=actor, limit=10, cursor=None, now=timezone.now())
    return [key.lookup_id for key in page.rows]


def remove(actor: Actor, person: Person) -> list[LookupId]:
    """Remove a member, and return the lookup IDs of the keys that become unowned."""
    removed = remove_member(actor=actor, user_id=person.user_id, reason="left", now=timezone.now())
    return [key.lookup_id for key in removed.keys]


def demote(actor: Actor, person: Person) -> list[LookupId]:
    """Make a member an auditor, and return the lookup IDs of the keys that become unowned."""
    role_change = change_role(
        actor=actor, user_id=person.user_id, role=Role.AUDITOR, reason="", now=timezone.now()
    )
    return [key.lookup_id for key in role_change.unowned_keys.keys]


def test_a_key_records_its_creator_and_the_last_user_who_saw_its_secret(
    alice: Person, owner: Person
) -> None:
    created = make_service_key_as(alice.actor)
    rotation = KeyRotation(overlap=timedelta(0))

    rotated = rotate_key(
        actor=owner.actor, lookup_id=created.key.lookup_id, rotation=rotation, now=timezone.now()
    )

    assert (created.key.created_by_email, created.key.issued_by_email) == (alice.email, alice.email)
    assert rotated.key.created_by_email == alice.email
    assert rotated.key.issued_by_email == owner.email


def test_removing_a_keys_creator_makes_the_key_unowned(alice: Person, owner: Person) -> None:
    alices_key = make_service_key_as(alice.actor).key
    owners_key = make_service_key_as(owner.actor).key

    assert list_unowned(owner.actor) == []

    assert remove(owner.actor, alice) == [alices_key.lookup_id]

    assert list_unowned(owner.actor) == [alices_key.lookup_id]
    key = find_key(actor=owner.actor, lookup_id=owners_key.lookup_id, now=timezone.now())
    assert key.issued_by_email == owner.email


def test_demoting_a_keys_creator_makes_the_key_unowned(alice: Person, owner: Person) -> None:
    key = make_service_key_as(alice.actor).key

    assert demote(owner.actor, alice) == [key.lookup_id]

    assert list_unowned(owner.actor) == [key.lookup_id]


def test_keys_created_by_a_users_key_belong_to_that_user(alice: Person, owner: Person) -> None:
    first = make_service_key_as(alice.actor)
    bearer = authenticate_key(text=first.text, address=None, now=timezone.now())

    second = make_service_key_as(bearer, "made by a key")

    assert second.key.created_by_email == alice.email
    # The newest key comes first.
    assert remove(owner.actor, alice) == [second.key.lookup_id, first.key.lookup_id]


def test_rotating_or_revoking_a_key_ends_its_unowned_state(alice: Person, owner: Person) -> None:
    rotated, revoked = make_service_key_as(alice.actor).key, make_service_key_as(alice.actor).key
    remove(owner.actor, alice)

    rotate_key(
        actor=owner.actor,
        lookup_id=rotated.lookup_id,
        rotation=KeyRotation(overlap=timedelta(0)),
        now=timezone.now(),
    )
    revoke_key(actor=owner.actor, lookup_id=revoked.lookup_id, reason="", now=timezone.now())

    assert list_unowned(owner.actor) == []


def test_developer_keys_are_never_unowned(alice: Person, owner: Person) -> None:
    request = KeyRequest(KeyKind.DEVELOPER, alice.user_id, name="Laptop", expires_at=None)
    create_key(actor=alice.actor, new=request, now=timezone.now())

    assert demote(owner.actor, alice) == []
    assert remove(owner.actor, alice) == []


def test_restoring_the_creators_role_ends_the_unowned_state(alice: Person, owner: Person) -> None:
    key = make_service_key_as(alice.actor).key

    demote(owner.actor, alice)
    assert list_unowned(owner.actor) == [key.lookup_id]
    change_role(
        actor=owner.actor,
        user_id=alice.user_id,
        role=Role.ADMINISTRATOR,
        reason="",
        now=timezone.now(),
    )

    assert list_unowned(owner.actor) == []


def test_another_tenant_sees_no_unowned_keys(alice: Person, owner: Person, cast: Cast) -> None:
    make_service_key_as(alice.actor)
    remove(owner.actor, alice)

    assert list_unowned(cast.globex.administrator.actor) == []


def test_a_developer_sees_no_unowned_keys_of_the_tenant(alice: Person, owner: Person) -> None:
    make_service_key_as(alice.actor)
    remove(owner.actor, alice)

    developer = replace(owner.actor, role=Role.DEVELOPER)
    assert list_unowned(developer) == []

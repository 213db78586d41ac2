"""Unowned keys: their text was shown to a user who may no longer create keys.

They keep working, and are listed.
"""

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

KEYS = frozenset({KeyScope.KEYS_WRITE, KeyScope.INFERENCE})


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def owner(company: Company) -> Person:
    return company.people[Role.OWNER]


@pytest.fixture
def alice(company: Company) -> Person:
    return make_colleague(company, Role.ADMINISTRATOR)


def service_key(actor: Actor, name: str = "CI") -> CreatedKey:
    wish = KeyRequest(KeyKind.SERVICE, None, name, None, scopes=KEYS)
    return create_key(actor=actor, new=wish, now=timezone.now())


def unattended(actor: Actor) -> list[LookupId]:
    page = list_unowned_keys(actor=actor, limit=10, cursor=None, now=timezone.now())
    return [key.lookup_id for key in page.rows]


def remove(actor: Actor, person: Person) -> list[LookupId]:
    left = remove_member(actor=actor, user_id=person.user_id, reason="left", now=timezone.now())
    return [key.lookup_id for key in left.keys]


def demote(actor: Actor, person: Person) -> list[LookupId]:
    changed = change_role(
        actor=actor, user_id=person.user_id, role=Role.AUDITOR, reason="", now=timezone.now()
    )
    return [key.lookup_id for key in changed.unowned_keys.keys]


def test_a_key_says_who_made_it_and_who_was_shown_its_text(alice: Person, owner: Person) -> None:
    made = service_key(alice.actor)
    rotation = KeyRotation(overlap=timedelta(0))

    rotated = rotate_key(
        actor=owner.actor, lookup_id=made.key.lookup_id, rotation=rotation, now=timezone.now()
    )

    assert (made.key.created_by_email, made.key.issued_by_email) == (alice.email, alice.email)
    assert rotated.key.created_by_email == alice.email
    assert rotated.key.issued_by_email == owner.email


def test_the_removal_of_who_made_keys_says_which_go_on(alice: Person, owner: Person) -> None:
    hers, others = service_key(alice.actor).key, service_key(owner.actor).key

    assert unattended(owner.actor) == []
    assert remove(owner.actor, alice) == [hers.lookup_id]

    assert unattended(owner.actor) == [hers.lookup_id]
    found = find_key(actor=owner.actor, lookup_id=others.lookup_id, now=timezone.now())
    assert found.issued_by_email == owner.email


def test_so_does_taking_the_right_away(alice: Person, owner: Person) -> None:
    made = service_key(alice.actor).key

    assert demote(owner.actor, alice) == [made.lookup_id]

    assert unattended(owner.actor) == [made.lookup_id]


def test_what_a_key_of_hers_has_made_is_hers(alice: Person, owner: Person) -> None:
    first = service_key(alice.actor)
    bearer = authenticate_key(text=first.text, address=None, now=timezone.now())
    second = service_key(bearer, "made by a key")

    assert second.key.created_by_email == alice.email
    assert remove(owner.actor, alice) == [second.key.lookup_id, first.key.lookup_id]


def test_a_new_text_or_an_end_settles_it(alice: Person, owner: Person) -> None:
    rotated, revoked = service_key(alice.actor).key, service_key(alice.actor).key
    remove(owner.actor, alice)

    rotate_key(
        actor=owner.actor,
        lookup_id=rotated.lookup_id,
        rotation=KeyRotation(overlap=timedelta(0)),
        now=timezone.now(),
    )
    revoke_key(actor=owner.actor, lookup_id=revoked.lookup_id, reason="", now=timezone.now())

    assert unattended(owner.actor) == []


def test_ones_own_key_is_no_matter_of_who_may_make_keys(alice: Person, owner: Person) -> None:
    wish = KeyRequest(KeyKind.DEVELOPER, alice.user_id, "Laptop", None)
    create_key(actor=alice.actor, new=wish, now=timezone.now())

    assert demote(owner.actor, alice) == []
    assert remove(owner.actor, alice) == []


def test_who_may_make_keys_again_answers_for_them_again(alice: Person, owner: Person) -> None:
    made = service_key(alice.actor).key

    demote(owner.actor, alice)
    assert unattended(owner.actor) == [made.lookup_id]
    change_role(
        actor=owner.actor,
        user_id=alice.user_id,
        role=Role.ADMINISTRATOR,
        reason="",
        now=timezone.now(),
    )

    assert unattended(owner.actor) == []


def test_the_neighbour_sees_nothing_of_it(alice: Person, owner: Person, cast: Cast) -> None:
    service_key(alice.actor)
    remove(owner.actor, alice)

    assert unattended(cast.globex.administrator.actor) == []


def test_a_developer_sees_none_of_the_tenants(alice: Person, owner: Person) -> None:
    service_key(alice.actor)
    remove(owner.actor, alice)

    assert unattended(Actor(owner.actor.tenant_id, owner.user_id, Role.DEVELOPER, None, "")) == []

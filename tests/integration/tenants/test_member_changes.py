"""Changing roles and removing members: consequences, permissions, and the last owner."""

import pytest
from django.utils import timezone

from caret.contracts.api_key import KeyKind
from caret.contracts.snapshot import SNAPSHOTS, TenantSnapshot, decode_snapshot
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import redis_connection
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.identity.api_keys.operations import create_key
from tenants.identity.api_keys.queries import KeyState, find_key
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.invitations.operations import create_invitation
from tenants.identity.invitations.queries import InvitationState, find_invitation
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.identity.members.operations import add_member
from tenants.identity.members.queries import read_page_of_members
from tenants.models import AuditEntry
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import find_memberships, list_members
from tests.fixtures.companies import Cast, Company, Person, make_company, make_key
from tests.fixtures.users import Mailbox, make_colleague


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def owner(company: Company) -> Person:
    return company.people[Role.OWNER]


def set_role(actor: Actor, person: Person, role: Role) -> None:
    change_role(actor=actor, user_id=person.user_id, role=role, reason="", now=timezone.now())


def remove(actor: Actor, person: Person) -> None:
    remove_member(actor=actor, user_id=person.user_id, reason="left", now=timezone.now())


def read_published(company: Company) -> TenantSnapshot:
    data = redis_connection.connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data)


def read_roles(company: Company) -> dict[UserId, Role]:
    return {row.user_id: row.role for row in list_members(tenant_id=company.tenant_id)}


def test_an_administrator_can_change_a_developers_role(company: Company) -> None:
    alice, ada = make_colleague(company, Role.ADMINISTRATOR), make_colleague(company)

    set_role(alice.actor, ada, Role.BILLING)

    assert read_roles(company)[ada.user_id] is Role.BILLING


def test_a_change_of_role_is_audited(company: Company, owner: Person) -> None:
    ada = make_colleague(company)

    set_role(owner.actor, ada, Role.AUDITOR)

    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="member.role_changed")
    assert (entry.before, entry.after) == ({"role": "developer"}, {"role": "auditor"})
    assert entry.target == f"user:{ada.user_id}"


def test_an_administrator_cannot_make_anyone_an_owner(company: Company) -> None:
    alice, ada = make_colleague(company, Role.ADMINISTRATOR), make_colleague(company)

    for person in (alice, ada):
        with pytest.raises(Forbidden, match=r"members\.write_owners"):
            set_role(alice.actor, person, Role.OWNER)

    assert read_roles(company)[alice.user_id] is Role.ADMINISTRATOR


def test_an_administrator_can_neither_demote_nor_remove_an_owner(
    company: Company, owner: Person
) -> None:
    alice = make_colleague(company, Role.ADMINISTRATOR)
    make_colleague(company, Role.OWNER)

    with pytest.raises(Forbidden):
        set_role(alice.actor, owner, Role.DEVELOPER)
    with pytest.raises(Forbidden):
        remove(alice.actor, owner)

    assert read_roles(company)[owner.user_id] is Role.OWNER


def test_an_administrator_cannot_add_an_owner(company: Company, cast: Cast) -> None:
    alice = make_colleague(company, Role.ADMINISTRATOR)

    with pytest.raises(Forbidden):
        add_member(
            actor=alice.actor,
            user_id=cast.globex.developer.user_id,
            role=Role.OWNER,
            now=timezone.now(),
        )


def test_an_owner_can_leave_after_appointing_another(company: Company, owner: Person) -> None:
    second = make_colleague(company)

    set_role(owner.actor, second, Role.OWNER)
    remove(owner.actor, owner)

    assert read_roles(company) == {second.user_id: Role.OWNER}


def test_the_last_owner_can_be_neither_demoted_nor_removed(company: Company, owner: Person) -> None:
    with pytest.raises(Conflict, match="last owner"):
        set_role(owner.actor, owner, Role.ADMINISTRATOR)
    with pytest.raises(Conflict, match="last owner"):
        remove(owner.actor, owner)
    with pytest.raises(Conflict, match="last owner"):
        remove(company.platform, owner)


def test_an_owner_who_left_does_not_count_as_a_remaining_owner(
    company: Company, owner: Person
) -> None:
    """The remaining owner is the last one, although the tenant had another owner before."""
    second = make_colleague(company, Role.OWNER)
    remove(owner.actor, second)

    with pytest.raises(Conflict, match="last owner"):
        remove(owner.actor, owner)


def test_two_owners_cannot_demote_each_other(company: Company, owner: Person) -> None:
    """The second request began while its user was an owner, so it has the permission.

    Only the check for the last owner refuses it.
    """
    second = make_colleague(company, Role.OWNER)

    set_role(owner.actor, second, Role.DEVELOPER)
    with pytest.raises(Conflict, match="last owner"):
        set_role(second.actor, owner, Role.DEVELOPER)


def test_a_removed_members_keys_are_revoked_at_the_gateways(
    company: Company, owner: Person
) -> None:
    ada, carl = make_colleague(company), make_colleague(company)
    key, other_key = make_key(company, ada).key, make_key(company, carl).key

    remove(owner.actor, ada)

    states = {row.lookup_id: row.revoked_at_ms for row in read_published(company).credentials}
    assert states[key.lookup_id] is not None
    assert states[other_key.lookup_id] is None
    revoked_key = find_key(actor=owner.actor, lookup_id=key.lookup_id, now=timezone.now())
    assert revoked_key.state is KeyState.REVOKED


def test_each_key_revoked_with_its_member_is_audited(company: Company, owner: Person) -> None:
    ada = make_colleague(company)
    targets = {f"key:{make_key(company, ada).key.lookup_id}" for _ in range(2)}

    remove(owner.actor, ada)

    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(action="key.revoked")
        assert {entry.target for entry in entries} == targets


def test_a_removed_member_has_no_membership(company: Company, owner: Person) -> None:
    ada = make_colleague(company)

    remove(owner.actor, ada)

    assert find_memberships(user_id=ada.user_id) == []


def test_a_removed_member_cannot_get_a_key(company: Company, owner: Person) -> None:
    ada = make_colleague(company)
    remove(owner.actor, ada)

    with pytest.raises(InvalidValue) as exc_info:
        make_key(company, ada)

    assert exc_info.value.field == "owner_id"


def test_adding_a_member_again_does_not_restore_their_revoked_keys(
    company: Company, owner: Person
) -> None:
    ada = make_colleague(company)
    key = make_key(company, ada).key
    remove(owner.actor, ada)

    add_member(actor=owner.actor, user_id=ada.user_id, role=Role.BILLING, now=timezone.now())

    assert read_roles(company)[ada.user_id] is Role.BILLING
    found_key = find_key(actor=owner.actor, lookup_id=key.lookup_id, now=timezone.now())
    assert found_key.state is KeyState.REVOKED


def test_removing_an_administrator_revokes_their_invitations(
    company: Company, owner: Person
) -> None:
    alice = make_colleague(company, Role.ADMINISTRATOR)
    invitation = create_invitation(
        actor=alice.actor,
        email="second-self@elsewhere.example",
        role=Role.ADMINISTRATOR,
        mailer=Mailbox(),
        now=timezone.now(),
    )

    remove(owner.actor, alice)

    found_invitation = find_invitation(
        actor=owner.actor, invitation_id=invitation.id, now=timezone.now()
    )
    assert found_invitation.state is InvitationState.REVOKED


def test_a_developer_can_remove_only_themselves(company: Company) -> None:
    ada, carl = make_colleague(company), make_colleague(company)

    with pytest.raises(Forbidden):
        remove(ada.actor, carl)
    remove(ada.actor, ada)

    assert ada.user_id not in read_roles(company)
    assert carl.user_id in read_roles(company)


def test_another_tenants_members_are_not_found(company: Company, cast: Cast) -> None:
    bob, ada = cast.globex.administrator, make_colleague(company)

    with pytest.raises(NotFound):
        set_role(bob.actor, ada, Role.AUDITOR)
    with pytest.raises(NotFound):
        remove(bob.actor, ada)

    assert read_roles(company)[ada.user_id] is Role.DEVELOPER


def test_the_paginated_list_has_only_the_tenants_members(
    company: Company, cast: Cast, owner: Person
) -> None:
    colleagues = [make_colleague(company) for _ in range(4)]

    first = read_page_of_members(actor=owner.actor, limit=3, cursor=None)
    second = read_page_of_members(actor=owner.actor, limit=3, cursor=first.next_cursor)

    user_ids = [row.user_id for row in (*first.rows, *second.rows)]
    # The newest member comes first.
    assert user_ids == [person.user_id for person in (*reversed(colleagues), owner)]
    assert second.next_cursor is None


def test_listing_members_requires_permission(cast: Cast) -> None:
    with pytest.raises(Forbidden):
        read_page_of_members(actor=cast.acme.developer.actor, limit=10, cursor=None)


def test_another_tenant_cannot_create_a_key_for_a_member(company: Company, cast: Cast) -> None:
    ada = make_colleague(company)
    request = KeyRequest(kind=KeyKind.DEVELOPER, owner_id=ada.user_id, name="x", expires_at=None)

    with pytest.raises(InvalidValue):
        create_key(actor=cast.globex.administrator.actor, new=request, now=timezone.now())

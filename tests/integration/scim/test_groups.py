"""A SCIM group is a team. An owner can map a group to a role, which its members then get."""

import secrets
from collections.abc import Callable
from uuid import UUID

import pytest
from django.utils import timezone

from caret.foundation.ids import UserId
from tenants.base.errors import Conflict, Forbidden, NotFound
from tenants.base.permissions import Role
from tenants.identity.members.queries import read_page_of_members
from tenants.identity.scim.groups import set_group_role
from tenants.identity.teams.operations import (
    add_team_member,
    delete_team,
    remove_team_member,
    rename_team,
)
from tenants.identity.teams.queries import read_page_of_teams
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import list_members
from tests.fixtures.companies import Cast, Company
from tests.fixtures.users import make_colleague, make_domain, make_team
from tests.integration.scim.people import roles_by_email
from tests.integration.scim.provider import GROUP, Provider, make_provider


@pytest.fixture
def people(company: Company, provider: Provider) -> dict[str, str]:
    """Provision two users, and return their SCIM IDs by email address."""
    domain = f"{secrets.token_hex(4)}.example"
    make_domain(company, domain, verified=True)
    return {
        email: provider.create_user(email)["id"] for email in (f"ada@{domain}", f"bob@{domain}")
    }


def list_team_emails(company: Company, team_id: str) -> set[str]:
    page = read_page_of_members(
        actor=company.platform, limit=100, cursor=None, team_id=UUID(team_id)
    )
    return {row.email for row in page.rows}


def map_group(company: Company, group_id: str, role: Role | None) -> None:
    set_group_role(actor=company.platform, group_id=UUID(group_id), role=role, now=timezone.now())


def test_a_group_is_a_team(company: Company, provider: Provider, people: dict[str, str]) -> None:
    group = provider.create_group("Platform", *people.values())

    teams = read_page_of_teams(actor=company.platform, limit=10, cursor=None).rows
    assert [(str(team.id), team.name) for team in teams] == [(group["id"], "Platform")]
    assert list_team_emails(company, group["id"]) == set(people)


def test_membership_patches_of_common_identity_providers_are_accepted(
    company: Company, provider: Provider, people: dict[str, str]
) -> None:
    (ada, ada_id), (bob, bob_id) = people.items()
    group_id = provider.create_group("Platform")["id"]
    path = f"Groups/{group_id}"

    provider.patch(path, {"op": "Add", "path": "members", "value": [{"value": ada_id}]})
    provider.patch(path, {"op": "add", "path": "members", "value": [{"value": bob_id}]})
    both_members = list_team_emails(company, group_id)
    entra_removal = {"op": "Remove", "path": "members", "value": [{"value": ada_id}]}
    provider.patch(path, entra_removal)
    without_ada = list_team_emails(company, group_id)
    provider.patch(path, {"op": "remove", "path": f'members[value eq "{bob_id}"]'})

    assert (both_members, without_ada, list_team_emails(company, group_id)) == (
        {ada, bob},
        {bob},
        set(),
    )


def test_an_unknown_member_is_refused(provider: Provider) -> None:
    body = {"schemas": [GROUP], "displayName": "x", "members": [{"value": "nonsense"}]}

    assert provider.request("POST", "Groups", body).status_code == 400


def test_a_user_resource_lists_its_groups(provider: Provider, people: dict[str, str]) -> None:
    ada_id = next(iter(people.values()))
    group = provider.create_group("Platform", ada_id)

    user = provider.request("GET", f"Users/{ada_id}").json()

    assert [(listed["value"], listed["display"]) for listed in user["groups"]] == [
        (group["id"], "Platform")
    ]


def test_a_duplicate_group_name_is_a_conflict(provider: Provider) -> None:
    provider.create_group("Platform")

    second_response = provider.request(
        "POST", "Groups", {"schemas": [GROUP], "displayName": "platform"}
    )

    assert (second_response.status_code, second_response.json()["scimType"]) == (409, "uniqueness")


def test_a_mapped_group_gives_its_members_their_role(
    company: Company, provider: Provider, people: dict[str, str]
) -> None:
    (ada, ada_id), (bob, _) = people.items()
    group = provider.create_group("Auditors", ada_id)

    map_group(company, group["id"], Role.AUDITOR)

    assert (roles_by_email(company)[ada], roles_by_email(company)[bob]) == (
        Role.AUDITOR,
        Role.DEVELOPER,
    )


def test_the_role_with_the_highest_priority_of_several_groups_counts(
    company: Company, provider: Provider, people: dict[str, str]
) -> None:
    (ada, ada_id), _ = people.items()
    for name, role in (("Finance", Role.BILLING), ("Auditors", Role.AUDITOR)):
        map_group(company, provider.create_group(name, ada_id)["id"], role)

    assert roles_by_email(company)[ada] is Role.AUDITOR


def test_leaving_a_mapped_group_makes_a_member_a_developer_again(
    company: Company, provider: Provider, people: dict[str, str]
) -> None:
    ada, ada_id = next(iter(people.items()))
    group = provider.create_group("Administrators", ada_id)
    map_group(company, group["id"], Role.ADMINISTRATOR)

    provider.patch(
        f"Groups/{group['id']}", {"op": "remove", "path": f'members[value eq "{ada_id}"]'}
    )

    assert roles_by_email(company)[ada] is Role.DEVELOPER


@pytest.mark.parametrize("ending", ["deleted", "unmapped"])
def test_deleting_or_unmapping_a_group_ends_its_role(
    company: Company, provider: Provider, people: dict[str, str], ending: str
) -> None:
    ada, ada_id = next(iter(people.items()))
    group = provider.create_group("Administrators", ada_id)
    map_group(company, group["id"], Role.ADMINISTRATOR)

    if ending == "deleted":
        provider.request("DELETE", f"Groups/{group['id']}")
    else:
        map_group(company, group["id"], None)

    assert roles_by_email(company)[ada] is Role.DEVELOPER


def test_groups_can_neither_grant_nor_remove_the_owner_role(
    company: Company, provider: Provider
) -> None:
    owner = company.people[Role.OWNER]
    make_domain(company, owner.email.partition("@")[2], verified=True)
    owner_id = provider.create_user(owner.email)["id"]
    group = provider.create_group("Auditors", owner_id)

    with pytest.raises(Forbidden):
        map_group(company, group["id"], Role.OWNER)
    map_group(company, group["id"], Role.AUDITOR)

    assert roles_by_email(company)[owner.email] is Role.OWNER


def test_an_administrator_cannot_map_groups(company: Company, provider: Provider) -> None:
    alice = make_colleague(company, Role.ADMINISTRATOR)
    group = provider.create_group("Auditors")

    with pytest.raises(Forbidden):
        set_group_role(
            actor=alice.actor,
            group_id=UUID(group["id"]),
            role=Role.ADMINISTRATOR,
            now=timezone.now(),
        )


def test_scim_groups_do_not_affect_manually_created_teams(
    company: Company, provider: Provider, people: dict[str, str]
) -> None:
    ada, ada_id = next(iter(people.items()))
    team_id = make_team(company)
    user = next(row for row in list_members(tenant_id=company.tenant_id) if row.email == ada)
    add_team_member(
        actor=company.platform,
        team_id=UUID(team_id),
        user_id=user.user_id,
        now=timezone.now(),
    )

    provider.create_group("Platform", ada_id)

    assert list_team_emails(company, team_id) == {ada}


@pytest.mark.parametrize(
    "change",
    [
        lambda actor, team_id, user_id: delete_team(
            actor=actor, team_id=team_id, now=timezone.now()
        ),
        lambda actor, team_id, user_id: rename_team(
            actor=actor, team_id=team_id, name="Ours", now=timezone.now()
        ),
        lambda actor, team_id, user_id: add_team_member(
            actor=actor, team_id=team_id, user_id=user_id, now=timezone.now()
        ),
        lambda actor, team_id, user_id: remove_team_member(
            actor=actor, team_id=team_id, user_id=user_id, now=timezone.now()
        ),
    ],
    ids=["delete", "rename", "add member", "remove member"],
)
def test_a_scim_group_can_be_changed_only_through_scim(
    company: Company,
    provider: Provider,
    people: dict[str, str],
    change: Callable[[Actor, UUID, UserId], object],
) -> None:
    ada, ada_id = next(iter(people.items()))
    group = provider.create_group("Administrators", ada_id)
    ids = {row.email: row.user_id for row in list_members(tenant_id=company.tenant_id)}

    with pytest.raises(Conflict, match="managed through SCIM"):
        change(company.people[Role.OWNER].actor, UUID(group["id"]), ids[ada])

    assert list_team_emails(company, group["id"]) == {ada}
    assert (
        provider.request("GET", f"Groups/{group['id']}").json()["displayName"] == "Administrators"
    )


def test_another_tenants_token_finds_no_groups(
    company: Company, provider: Provider, people: dict[str, str], cast: Cast
) -> None:
    group = provider.create_group("Platform", *people.values())
    other_provider = make_provider(cast.globex)
    foreign_group = {
        "schemas": [GROUP],
        "displayName": secrets.token_hex(4),
        "members": [{"value": next(iter(people.values()))}],
    }

    assert other_provider.request("GET", f"Groups/{group['id']}").status_code == 404
    assert other_provider.request("DELETE", f"Groups/{group['id']}").status_code == 404
    assert other_provider.request("POST", "Groups", foreign_group).status_code == 400
    with pytest.raises(NotFound):
        set_group_role(
            actor=cast.globex.platform,
            group_id=UUID(group["id"]),
            role=Role.AUDITOR,
            now=timezone.now(),
        )

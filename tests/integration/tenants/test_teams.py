"""Teams can be created, renamed and deleted; their members belong to the same tenant."""

import uuid

import pytest
from django.utils import timezone

from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.identity.member_lifecycle import remove_member
from tenants.identity.members.queries import read_page_of_members
from tenants.identity.teams.operations import (
    MAX_NAME_CHARS,
    add_team_member,
    create_team,
    delete_team,
    remove_team_member,
    rename_team,
)
from tenants.identity.teams.queries import TeamView, find_team, read_page_of_teams
from tests.fixtures.companies import Cast, Company, Person, make_company
from tests.fixtures.users import make_colleague


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


def make_team(company: Company, name: str = "Platform") -> TeamView:
    return create_team(actor=company.platform, name=name, now=timezone.now())


def add_to_team(company: Company, team: TeamView, person: Person) -> TeamView:
    return add_team_member(
        actor=company.platform, team_id=team.id, user_id=person.user_id, now=timezone.now()
    )


def list_member_ids(company: Company, team: TeamView) -> set[str]:
    page = read_page_of_members(actor=company.platform, limit=200, cursor=None, team_id=team.id)
    return {row.user_id for row in page.rows}


def test_a_member_may_be_in_several_teams(company: Company) -> None:
    ada = make_colleague(company)
    teams = [make_team(company, "One"), make_team(company, "Two")]

    counts = [add_to_team(company, team, ada).num_members for team in teams]

    assert counts == [1, 1]
    assert all(list_member_ids(company, team) == {ada.user_id} for team in teams)


def test_adding_a_member_twice_has_no_effect(company: Company) -> None:
    ada, team = make_colleague(company), make_team(company)
    add_to_team(company, team, ada)

    assert add_to_team(company, team, ada).num_members == 1


def test_leaving_a_team_does_not_end_the_membership(company: Company) -> None:
    ada, team = make_colleague(company), make_team(company)
    add_to_team(company, team, ada)

    team_after = remove_team_member(
        actor=company.platform, team_id=team.id, user_id=ada.user_id, now=timezone.now()
    )

    assert team_after.num_members == 0
    all_members = read_page_of_members(actor=company.platform, limit=200, cursor=None)
    assert ada.user_id in {row.user_id for row in all_members.rows}


def test_leaving_the_tenant_ends_team_memberships(company: Company) -> None:
    ada, team = make_colleague(company), make_team(company)
    add_to_team(company, team, ada)

    remove_member(actor=company.platform, user_id=ada.user_id, reason="", now=timezone.now())

    assert find_team(actor=company.platform, team_id=team.id).num_members == 0
    with pytest.raises(NotFound):
        add_to_team(company, team, ada)


def test_a_team_name_is_unique_regardless_of_case(company: Company) -> None:
    make_team(company, "Platform")
    other_team = make_team(company, "Other")

    with pytest.raises(Conflict):
        make_team(company, "platform")
    with pytest.raises(Conflict):
        rename_team(
            actor=company.platform, team_id=other_team.id, name="PLATFORM", now=timezone.now()
        )


def test_two_tenants_can_have_teams_of_the_same_name(company: Company, cast: Cast) -> None:
    make_team(company, "Shared name")

    assert make_team(cast.globex, "Shared name").name == "Shared name"


def test_a_team_can_be_renamed(company: Company) -> None:
    team = make_team(company)

    renamed = rename_team(
        actor=company.platform, team_id=team.id, name=" Tools ", now=timezone.now()
    )

    assert renamed.name == "Tools"


def test_deleting_a_team_deletes_its_memberships(company: Company) -> None:
    ada, team = make_colleague(company), make_team(company)
    add_to_team(company, team, ada)

    delete_team(actor=company.platform, team_id=team.id, now=timezone.now())

    assert list_member_ids(company, team) == set()
    with pytest.raises(NotFound):
        find_team(actor=company.platform, team_id=team.id)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0b", "x" * (MAX_NAME_CHARS + 1)])
def test_a_malformed_name_is_refused(company: Company, name: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        make_team(company, name)

    assert exc_info.value.field == "name"


def test_another_tenants_member_cannot_join_a_team(company: Company, cast: Cast) -> None:
    with pytest.raises(NotFound):
        add_to_team(company, make_team(company), cast.globex.developer)


def test_another_tenants_team_is_not_found(company: Company, cast: Cast) -> None:
    team, bob = make_team(company), cast.globex.administrator

    for attempt in (
        lambda: find_team(actor=bob.actor, team_id=team.id),
        lambda: rename_team(actor=bob.actor, team_id=team.id, name="x", now=timezone.now()),
        lambda: delete_team(actor=bob.actor, team_id=team.id, now=timezone.now()),
        lambda: add_team_member(
            actor=bob.actor, team_id=team.id, user_id=bob.user_id, now=timezone.now()
        ),
    ):
        with pytest.raises(NotFound):
            attempt()

    assert team.id not in {
        row.id for row in read_page_of_teams(actor=bob.actor, limit=200, cursor=None).rows
    }


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
def test_creating_teams_requires_permission(company: Company, role: Role) -> None:
    person = make_colleague(company, role)

    with pytest.raises(Forbidden):
        create_team(actor=person.actor, name=str(uuid.uuid4()), now=timezone.now())

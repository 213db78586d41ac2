"""Teams and their members."""

import uuid

import pytest
from django.utils import timezone

from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.identity.member_lifecycle import remove_member
from tenants.identity.members.queries import page_of_members
from tenants.identity.teams.operations import (
    add_team_member,
    create_team,
    delete_team,
    remove_team_member,
    rename_team,
)
from tenants.identity.teams.queries import TeamView, find_team, page_of_teams
from tests.fixtures.companies import Cast, Company, Person, make_company
from tests.fixtures.users import make_colleague


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


def make(company: Company, name: str = "Platform") -> TeamView:
    return create_team(actor=company.platform, name=name, now=timezone.now())


def put(company: Company, team: TeamView, person: Person) -> TeamView:
    return add_team_member(
        actor=company.platform, team_id=team.id, user_id=person.user_id, now=timezone.now()
    )


def members_of(company: Company, team: TeamView) -> set[str]:
    page = page_of_members(actor=company.platform, limit=200, cursor=None, team_id=team.id)
    return {row.user_id for row in page.rows}


def test_a_member_may_be_in_several_teams(company: Company) -> None:
    ada = make_colleague(company)
    teams = [make(company, "One"), make(company, "Two")]

    counts = [put(company, team, ada).num_members for team in teams]

    assert counts == [1, 1]
    assert all(members_of(company, team) == {ada.user_id} for team in teams)


def test_putting_him_in_twice_is_putting_him_in_once(company: Company) -> None:
    ada, team = make_colleague(company), make(company)
    put(company, team, ada)

    assert put(company, team, ada).num_members == 1


def test_who_is_taken_out_stays_a_member_of_the_tenant(company: Company) -> None:
    ada, team = make_colleague(company), make(company)
    put(company, team, ada)

    left = remove_team_member(
        actor=company.platform, team_id=team.id, user_id=ada.user_id, now=timezone.now()
    )

    assert left.num_members == 0
    everybody = page_of_members(actor=company.platform, limit=200, cursor=None)
    assert ada.user_id in {row.user_id for row in everybody.rows}


def test_who_leaves_the_tenant_leaves_its_teams_for_good(company: Company) -> None:
    ada, team = make_colleague(company), make(company)
    put(company, team, ada)

    remove_member(actor=company.platform, user_id=ada.user_id, reason="", now=timezone.now())

    assert find_team(actor=company.platform, team_id=team.id).num_members == 0
    with pytest.raises(NotFound):
        put(company, team, ada)


def test_a_name_is_one_teams_whatever_its_case(company: Company) -> None:
    make(company, "Platform")
    other = make(company, "Other")

    with pytest.raises(Conflict):
        make(company, "platform")
    with pytest.raises(Conflict):
        rename_team(actor=company.platform, team_id=other.id, name="PLATFORM", now=timezone.now())


def test_two_companies_may_name_their_teams_alike(company: Company, cast: Cast) -> None:
    make(company, "Shared name")

    assert make(cast.globex, "Shared name").name == "Shared name"


def test_a_team_is_renamed(company: Company) -> None:
    team = make(company)

    renamed = rename_team(
        actor=company.platform, team_id=team.id, name=" Tools ", now=timezone.now()
    )

    assert renamed.name == "Tools"


def test_a_deleted_team_is_gone_with_its_rows(company: Company) -> None:
    ada, team = make_colleague(company), make(company)
    put(company, team, ada)

    delete_team(actor=company.platform, team_id=team.id, now=timezone.now())

    assert members_of(company, team) == set()
    with pytest.raises(NotFound):
        find_team(actor=company.platform, team_id=team.id)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0b", "x" * 121])
def test_a_malformed_name_is_refused(company: Company, name: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        make(company, name)

    assert caught.value.field == "name"


def test_a_neighbours_member_cannot_be_put_in(company: Company, cast: Cast) -> None:
    with pytest.raises(NotFound):
        put(company, make(company), cast.globex.developer)


def test_the_neighbour_finds_no_team_of_ours(company: Company, cast: Cast) -> None:
    team, bob = make(company), cast.globex.administrator

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
        row.id for row in page_of_teams(actor=bob.actor, limit=200, cursor=None).rows
    }


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
def test_who_may_not_write_teams_makes_none(company: Company, role: Role) -> None:
    person = make_colleague(company, role)

    with pytest.raises(Forbidden):
        create_team(actor=person.actor, name=str(uuid.uuid4()), now=timezone.now())

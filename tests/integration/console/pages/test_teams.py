"""Teams, as each role and another tenant see them."""

import re
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from console.templatetags.email_addresses import breakable
from tenants.base.permissions import Role
from tenants.identity.members.search import MemberFilter, search_members
from tenants.identity.teams.operations import MAX_NAME_CHARS, add_team_member, create_team
from tenants.identity.teams.queries import TeamView
from tenants.identity.teams.search import TeamFilter, find_teams
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

UNKNOWN_ID = uuid.UUID(int=0)


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.fixture
def client(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the administrator's browser."""
    return sign_in_with_step_up(company.administrator)


@pytest.fixture
def platform_team(company: Company) -> TeamView:
    return make_team(company, "Platform")


def make_team(company: Company, name: str) -> TeamView:
    return create_team(actor=company.platform, name=name, now=timezone.now())


def list_team_names(company: Company) -> list[str]:
    page = find_teams(actor=company.platform, team_filter=TeamFilter(), limit=10, cursor=None)
    return [team.name for team in page.rows]


def list_member_emails(company: Company, team: TeamView) -> list[str]:
    page = search_members(
        actor=company.platform, member_filter=MemberFilter(team_id=team.id), limit=10, cursor=None
    )
    return [row.email for row in page.rows]


@pytest.mark.parametrize("path", ["", "/new", f"/{UNKNOWN_ID}", f"/{UNKNOWN_ID}/delete"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(f"/teams{path}")["Location"] == f"/sign-in?next=/teams{path}"


@pytest.mark.parametrize(
    ("role", "status", "may_change"),
    [
        (Role.OWNER, 200, True),
        (Role.ADMINISTRATOR, 200, True),
        (Role.BILLING, 200, False),
        (Role.AUDITOR, 200, False),
        (Role.DEVELOPER, 403, False),
    ],
)
def test_each_role_sees_only_the_actions_that_it_may_take(
    cast: Cast, sign_in_with_step_up: SignIn, role: Role, status: int, may_change: bool
) -> None:
    team = make_team(cast.acme, f"Team of the {role}")
    client = sign_in_with_step_up(cast.acme.people[role])
    team_page = client.get(f"/teams/{team.id}")

    assert client.get("/teams").status_code == team_page.status_code == status
    assert (f"/teams/{team.id}/rename" in team_page.content.decode()) == may_change
    assert client.get("/teams/new").status_code == (200 if may_change else 403)
    for action in ("rename", "delete"):
        path = f"/teams/{team.id}/{action}"
        assert client.get(path).status_code == (200 if may_change else 403)
    if not may_change:
        assert client.post(f"/teams/{team.id}/add", {"email": "x@y.example"}).status_code == 403


def test_the_billing_role_does_not_see_members_addresses(cast: Cast, sign_in: SignIn) -> None:
    team = make_team(cast.acme, "Payments")
    ada = cast.acme.developer
    add_team_member(
        actor=cast.acme.platform, team_id=team.id, user_id=ada.user_id, now=timezone.now()
    )

    page = sign_in(cast.acme.people[Role.BILLING]).get(f"/teams/{team.id}").content.decode()

    assert "1 member" in page
    assert ada.email not in page
    assert breakable(ada.email) not in page


@pytest.mark.parametrize("path", ["", "/rename", "/delete"])
def test_another_tenants_team_is_not_found(
    platform_team: TeamView, cast: Cast, sign_in_with_step_up: SignIn, path: str
) -> None:
    client = sign_in_with_step_up(cast.globex.administrator)

    foreign_team = client.get(f"/teams/{platform_team.id}{path}")
    unknown_team = client.get(f"/teams/{UNKNOWN_ID}{path}")

    assert foreign_team.status_code == unknown_team.status_code == 404
    assert foreign_team.content == unknown_team.content


def test_an_invalid_cursor_of_a_teams_members_is_a_bad_request(
    platform_team: TeamView, client: Client
) -> None:
    assert client.get(f"/teams/{platform_team.id}", {"cursor": "x"}).status_code == 400


def test_another_tenant_cannot_change_a_team(
    company: Company, platform_team: TeamView, cast: Cast, sign_in_with_step_up: SignIn
) -> None:
    client = sign_in_with_step_up(cast.globex.administrator)
    path = f"/teams/{platform_team.id}"
    colleague_form = {"email": cast.globex.developer.email}

    assert client.post(f"{path}/add", colleague_form).status_code == 404
    assert client.post(f"{path}/delete").status_code == 404
    assert client.post(f"{path}/rename", {"name": "Ours"}).status_code == 404
    assert list_team_names(company) == ["Platform"]


def test_the_list_is_filtered_and_sorted_by_its_query(company: Company, client: Client) -> None:
    make_team(company, "Anvil")
    make_team(company, "bellows")

    def list_names(**query: str) -> list[str]:
        page = client.get("/teams", query).content.decode()
        return re.findall(r'class="name"[^>]*>([^<]+)<', page)

    with few_queries():
        assert list_names() == ["Anvil", "bellows"]
    assert list_names(sort="-name") == ["bellows", "Anvil"]
    assert list_names(q="ELL") == ["bellows"]
    assert list_names(q="x") == []
    lines = client.get("/teams", {"as": "csv"}).content.decode().splitlines()
    assert [line.split(",")[0] for line in lines] == ["name", "Anvil", "bellows"]


def test_a_team_is_created_renamed_and_deleted(company: Company, client: Client) -> None:
    created = client.post("/teams/new", {"name": "Anvil"}, follow=True)
    path, _status = created.redirect_chain[-1]  # the page of the new team

    client.post(f"{path}/rename", {"name": "Bellows"})
    renamed = list_team_names(company)
    done = client.post(f"{path}/delete", follow=True).content.decode()

    assert "Team Anvil created" in created.content.decode()
    assert renamed == ["Bellows"]
    assert "Bellows deleted" in done
    assert list_team_names(company) == []


# "platform" is the name of another team: names are compared without regard to case.
@pytest.mark.parametrize("name", ["", "platform", "a\x07b", "x" * (MAX_NAME_CHARS + 1)])
def test_an_invalid_name_gets_an_error_message(
    company: Company, platform_team: TeamView, client: Client, name: str
) -> None:
    other_team = make_team(company, "Other")

    new = client.post("/teams/new", {"name": name})
    rename = client.post(f"/teams/{other_team.id}/rename", {"name": name})

    assert new.status_code == rename.status_code == 400
    assert 'class="wrong"' in new.content.decode()
    assert list_team_names(company) == ["Other", "Platform"]


def test_removing_a_member_can_be_undone_from_its_success_message(
    company: Company, platform_team: TeamView, client: Client
) -> None:
    path = f"/teams/{platform_team.id}"
    gus = company.developer

    # In capital letters: addresses are compared without regard to case.
    client.post(f"{path}/add", {"email": gus.email.upper()})
    emails_after_adding = list_member_emails(company, platform_team)
    page = client.post(f"{path}/members/{gus.user_id}/out", follow=True).content.decode()
    emails_after_removal = list_member_emails(company, platform_team)
    undone = client.post(re.findall(r'action="([^"]+/back)"', page)[0], follow=True)

    assert emails_after_adding == [gus.email]
    assert emails_after_removal == []
    assert f"Removed {gus.email} from {platform_team.name}." in page
    assert f"Added {gus.email} back to {platform_team.name}." in undone.content.decode()
    assert list_member_emails(company, platform_team) == [gus.email]


@pytest.mark.parametrize("email", ["no address", "nobody@nowhere.example", ""])
def test_only_members_of_the_tenant_can_join_a_team(
    company: Company, platform_team: TeamView, client: Client, email: str
) -> None:
    answer = client.post(f"/teams/{platform_team.id}/add", {"email": email})

    assert answer.status_code == 400
    assert 'class="wrong"' in answer.content.decode()
    assert list_member_emails(company, platform_team) == []


def test_a_user_of_another_tenant_cannot_join_a_team(
    company: Company, platform_team: TeamView, cast: Cast, client: Client
) -> None:
    other_user = cast.acme.developer
    path = f"/teams/{platform_team.id}"

    assert client.post(f"{path}/add", {"email": other_user.email}).status_code == 400
    assert client.post(f"{path}/members/{other_user.user_id}/back").status_code == 404
    assert list_member_emails(company, platform_team) == []


def test_a_teams_page_runs_few_queries(
    company: Company, platform_team: TeamView, client: Client
) -> None:
    client.post(f"/teams/{platform_team.id}/add", {"email": company.developer.email})

    with few_queries():
        page = client.get(f"/teams/{platform_team.id}").content.decode()

    assert company.developer.email in page


def test_deleting_a_team_requires_a_step_up(
    company: Company, platform_team: TeamView, sign_in: SignIn
) -> None:
    answer = sign_in(company.administrator).post(f"/teams/{platform_team.id}/delete")

    assert answer["Location"].startswith("/account/confirm")
    assert list_team_names(company) == ["Platform"]

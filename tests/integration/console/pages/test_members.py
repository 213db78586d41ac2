"""Members and invitations, as each role and another tenant see them."""

import re
import uuid

import pytest
from django.contrib.messages import get_messages
from django.core import mail
from django.test import Client, override_settings
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.views.members.invitations import MAX_ADDRESSES
from tenants.base.errors import NotFound
from tenants.base.permissions import Role
from tenants.identity.api_keys.queries import KeyState, find_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.invitations.queries import InvitationState, read_page_of_invitations
from tenants.identity.members.queries import find_member
from tenants.identity.teams.operations import create_team
from tenants.models import ApiKey, Invitation
from tests.fixtures.companies import (
    ACME_PEOPLE,
    GLOBEX_PEOPLE,
    Cast,
    Company,
    make_company,
    make_key,
    make_service_key,
)
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

UNKNOWN_ID = uuid.UUID(int=0)


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def client(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the administrator's browser."""
    return sign_in_with_step_up(company.administrator)


def current_role_of(company: Company, first_role: Role) -> Role:
    """Return the current role of the person who had `first_role` when the company was made."""
    person = company.people[first_role]
    return find_member(actor=company.platform, user_id=person.user_id).role


def list_invitation_states(company: Company) -> list[tuple[str, InvitationState]]:
    page = read_page_of_invitations(
        actor=company.platform, limit=10, cursor=None, now=timezone.now()
    )
    return [(row.email, row.state) for row in page.rows]


def invite(client: Client, **form: str) -> str:
    form = {"emails": "eve@guest.example", "role": "developer"} | form
    return client.post("/members/invite", form, follow=True).content.decode()


@pytest.mark.parametrize(
    "path", ["", "/invite", "/invitations", f"/{UNKNOWN_ID}", f"/{UNKNOWN_ID}/role"]
)
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(f"/members{path}")["Location"] == f"/sign-in?next=/members{path}"


@pytest.mark.parametrize(
    ("role", "status", "may_invite"),
    [
        (Role.OWNER, 200, True),
        (Role.ADMINISTRATOR, 200, True),
        (Role.BILLING, 403, False),
        (Role.AUDITOR, 200, False),
        (Role.DEVELOPER, 403, False),
    ],
)
def test_each_role_sees_only_the_actions_that_it_may_take(
    cast: Cast, sign_in_with_step_up: SignIn, role: Role, status: int, may_invite: bool
) -> None:
    client = sign_in_with_step_up(cast.acme.people[role])
    member_path = f"/members/{cast.acme.developer.user_id}"

    assert client.get("/members").status_code == status
    assert client.get("/members/invitations").status_code == status
    assert client.get("/members/invite").status_code == (200 if may_invite else 403)
    page = client.get(member_path).content.decode()
    assert (f'href="{member_path}/role"' in page) == may_invite
    assert client.get(f"{member_path}/role").status_code == (200 if may_invite else 403)
    assert client.get(f"{member_path}/remove").status_code == (200 if may_invite else 403)


@pytest.mark.parametrize("path", ["", "/role", "/remove"])
def test_another_tenants_member_is_not_found(
    cast: Cast, sign_in_with_step_up: SignIn, path: str
) -> None:
    client = sign_in_with_step_up(cast.globex.administrator)

    foreign_member = client.get(f"/members/{cast.acme.developer.user_id}{path}")
    unknown_member = client.get(f"/members/{UNKNOWN_ID}{path}")

    assert foreign_member.status_code == unknown_member.status_code == 404
    assert foreign_member.content == unknown_member.content


def test_the_list_is_filtered_and_sorted_by_its_query(company: Company, client: Client) -> None:
    def names(**query: str) -> list[str]:
        page = client.get("/members", query).content.decode()
        return re.findall(r'class="name"[^>]*>([^<]+)<', page)

    with few_queries():
        assert names() == ["Ada", "Alice", "Audrey", "Bill", "Olga"]
    assert names(sort="-email") == ["Olga", "Bill", "Audrey", "Alice", "Ada"]
    assert names(q="LIC") == ["Alice"]
    assert names(role="auditor") == ["Audrey"]
    assert names(role="pink") == names()
    assert names(q="nobody") == []
    assert client.get("/members", {"cursor": "x"}).status_code == 400


def test_the_csv_file_obeys_the_filter(company: Company, client: Client) -> None:
    lines = client.get("/members", {"as": "csv", "q": "ada@"}).content.decode().splitlines()

    assert len(lines) == 2
    assert lines[1].startswith(f"{company.developer.email},Ada,developer,")


def test_a_members_page_shows_their_keys_with_few_queries(company: Company, client: Client) -> None:
    created = make_key(company, company.developer)

    with few_queries():
        page = client.get(f"/members/{company.developer.user_id}").content.decode()

    assert created.key.lookup_id in page
    # The page also shows the member's own consent to content capture.
    assert "Does not allow content capture" in page


def test_an_invitation_is_mailed_and_listed(company: Company, client: Client) -> None:
    page = invite(client)

    assert "Invitation sent to eve@guest.example." in page
    assert mail.outbox[-1].to == ["eve@guest.example"]
    assert list_invitation_states(company) == [("eve@guest.example", InvitationState.OPEN)]


@pytest.mark.parametrize(
    "changes", [{"emails": "nobody"}, {"role": "emperor"}, {"role": "owner"}, {"emails": ""}]
)
def test_an_invalid_invitation_is_shown_again_with_an_error(
    company: Company, client: Client, changes: dict[str, str]
) -> None:
    page = invite(client, **changes)

    assert 'class="wrong"' in page
    if changes.get("emails") == "nobody":
        assert "nobody</textarea>" in page
    assert list_invitation_states(company) == []


def test_a_member_cannot_be_invited_again(company: Company, client: Client) -> None:
    assert "is already a member" in invite(client, emails=company.developer.email)


@override_settings(MAX_INVITATIONS_A_DAY=2)
def test_the_form_shows_how_many_invitations_are_left(company: Company, client: Client) -> None:
    untouched = client.get("/members/invite").content.decode()
    invite(client)
    one_left = client.get("/members/invite").content.decode()
    invite(client, emails="ida@guest.example")
    none_left = client.get("/members/invite").content.decode()

    assert "You can send 2 more invitations now." in untouched
    assert "You can send 1 more invitation now." in one_left
    assert "Your tenant has sent 2 invitations in the last 24 hours" in none_left
    assert "Send invitation" in one_left
    assert "Send invitation" not in none_left


@override_settings(MAX_INVITATIONS_A_DAY=1)
def test_an_invitation_beyond_the_limit_is_refused_with_the_time_to_wait(
    company: Company, client: Client
) -> None:
    invite(client)

    response = client.post("/members/invite", {"emails": "ida@guest.example", "role": "developer"})

    assert response.status_code == 429
    assert 86_000 < int(response["Retry-After"]) <= 86_400  # a day, less some seconds
    assert "Try again in about 24 h." in response.content.decode()
    assert len(list_invitation_states(company)) == 1


def test_an_address_gets_at_most_three_invitations_a_day(company: Company, client: Client) -> None:
    sent_before = len(mail.outbox)
    invite(client)
    for _ in range(5):
        page = client.get("/members/invitations").content.decode()
        sends = re.findall(r'action="([^"]+/send)"', page)
        last = client.post(sends[0], follow=True).content.decode()

    assert "This address was sent 3 invitations in the last 24 hours" in last
    assert len(mail.outbox) - sent_before == 3


def test_an_invitation_is_sent_again_and_revoked(company: Company, client: Client) -> None:
    invite(client)
    page = client.get("/members/invitations").content.decode()
    sends = re.findall(r'action="([^"]+/send)"', page)

    client.post(sends[0])
    revokes = re.findall(
        r'action="([^"]+/revoke)"', client.get("/members/invitations").content.decode()
    )
    client.post(revokes[0])

    # Sending again revokes the first invitation and creates a second one.
    assert len(revokes) == 1
    assert [state for _, state in list_invitation_states(company)] == [InvitationState.REVOKED] * 2


def test_only_an_owner_changes_an_owners_invitation(
    company: Company, sign_in_with_step_up: SignIn, client: Client
) -> None:
    owner = sign_in_with_step_up(company.people[Role.OWNER])
    invite(owner, role="owner")
    path = re.findall(
        r'action="([^"]+)/revoke"', owner.get("/members/invitations").content.decode()
    )[0]

    assert path not in client.get("/members/invitations").content.decode()
    assert client.post(f"{path}/send").status_code == 403
    assert client.post(f"{path}/revoke").status_code == 403


def test_another_tenants_invitation_is_not_found(
    company: Company, cast: Cast, sign_in_with_step_up: SignIn, client: Client
) -> None:
    invite(client)
    page = client.get("/members/invitations").content.decode()
    path = re.findall(r'action="([^"]+)/revoke"', page)[0]
    other_tenant = sign_in_with_step_up(cast.globex.administrator)

    assert other_tenant.post(f"{path}/send").status_code == 404
    assert other_tenant.post(f"{path}/revoke").status_code == 404
    assert list_invitation_states(company) == [("eve@guest.example", InvitationState.OPEN)]


def test_a_change_of_role_can_be_undone_from_its_success_message(
    company: Company, client: Client
) -> None:
    path = f"/members/{company.developer.user_id}/role"

    page = client.post(path, {"role": "auditor", "reason": "Audit"}, follow=True).content.decode()
    changed = current_role_of(company, Role.DEVELOPER)
    undo = re.findall(r'action="([^"]*\?to=developer)"', page)[0]
    client.post(undo)

    assert changed is Role.AUDITOR
    assert current_role_of(company, Role.DEVELOPER) is Role.DEVELOPER


@pytest.mark.parametrize("role", ["owner", "emperor", ""])
def test_an_administrator_cannot_assign_the_owner_role_or_an_invalid_role(
    company: Company, client: Client, role: str
) -> None:
    page = client.post(f"/members/{company.developer.user_id}/role", {"role": role})

    assert page.status_code == 400
    assert current_role_of(company, Role.DEVELOPER) is Role.DEVELOPER


def test_an_administrator_cannot_change_or_remove_an_owner(
    company: Company, client: Client
) -> None:
    path = f"/members/{company.people[Role.OWNER].user_id}"

    assert f'href="{path}/role"' not in client.get(path).content.decode()
    assert client.post(f"{path}/role", {"role": "developer"}).status_code == 403
    assert client.post(f"{path}/remove").status_code == 403


def test_the_last_owner_cannot_be_demoted_or_removed(
    company: Company, sign_in_with_step_up: SignIn
) -> None:
    owner = sign_in_with_step_up(company.people[Role.OWNER])
    path = f"/members/{company.people[Role.OWNER].user_id}"

    assert "last owner" in owner.post(f"{path}/role", {"role": "developer"}).content.decode()
    assert "last owner" in owner.post(f"{path}/remove").content.decode()
    assert current_role_of(company, Role.OWNER) is Role.OWNER


def test_removing_a_member_revokes_their_keys(company: Company, client: Client) -> None:
    created = make_key(company, company.developer)
    path = f"/members/{company.developer.user_id}/remove"

    confirmation = client.get(path).content.decode()
    done = client.post(path, {"reason": "Left"}, follow=True).content.decode()

    assert "Remove Ada?" in confirmation
    assert "Ada is no longer a member" in done
    with pytest.raises(NotFound):
        current_role_of(company, Role.DEVELOPER)
    key = find_key(actor=company.platform, lookup_id=created.key.lookup_id, now=timezone.now())
    assert key.state is KeyState.REVOKED


def test_removing_a_member_requires_a_step_up(company: Company, sign_in: SignIn) -> None:
    path = f"/members/{company.developer.user_id}/remove"

    assert sign_in(company.administrator).post(path)["Location"].startswith("/account/confirm")
    assert current_role_of(company, Role.DEVELOPER) is Role.DEVELOPER


def test_the_page_states_that_there_are_no_invitations(sign_in: SignIn) -> None:
    company = make_company("hooli", GLOBEX_PEOPLE)

    page = sign_in(company.administrator).get("/members/invitations").content.decode()

    assert "No invitations yet" in page


def test_many_addresses_are_invited_at_once_to_a_team(company: Company, client: Client) -> None:
    team = create_team(actor=company.platform, name="Core", now=timezone.now())
    emails = "eve@guest.example, Ida <IDA@guest.example> jo@guest.example;\neve@guest.example"

    page = invite(client, emails=emails, role="auditor", team=str(team.id))

    assert "3 invitations sent." in page
    with tenant_scope(company.tenant_id):
        rows = Invitation.objects.values_list("email", "role", "team_id").order_by("email")
        assert list(rows) == [
            (f"{name}@guest.example", "auditor", team.id) for name in ("eve", "ida", "jo")
        ]


@override_settings(MAX_INVITATIONS_A_DAY=1)
def test_each_address_that_fails_is_named_with_its_reason(company: Company, client: Client) -> None:
    emails = f"{company.developer.email}\nnobody\neve@guest.example\nida@guest.example"

    response = client.post("/members/invite", {"emails": emails, "role": "developer"})
    page = response.content.decode()

    assert response.status_code == 200
    assert "1 invitation was created." in page
    assert "is already a member" in page
    assert "not a valid e-mail address" in page
    assert "which is the limit" in page
    remaining = re.search(r"<textarea[^>]*>([^<]*)</textarea>", page)
    assert remaining is not None
    assert remaining[1].split() == [company.developer.email, "nobody", "ida@guest.example"]


def test_the_page_says_if_no_invitation_was_created(company: Company, client: Client) -> None:
    page = invite(client, emails=f"{company.developer.email}\nnobody")

    assert "No invitations were created. Correct the addresses" in page
    assert list_invitation_states(company) == []


def test_too_many_addresses_are_refused(company: Company, client: Client) -> None:
    emails = " ".join(f"{number}@guest.example" for number in range(MAX_ADDRESSES + 1))

    assert 'class="wrong"' in invite(client, emails=emails)
    assert list_invitation_states(company) == []


def test_a_team_of_another_tenant_cannot_be_chosen(
    company: Company, cast: Cast, client: Client
) -> None:
    foreign_team = create_team(actor=cast.globex.platform, name="Theirs", now=timezone.now())

    assert 'class="wrong"' in invite(client, team=str(foreign_team.id))
    assert list_invitation_states(company) == []


def test_a_member_who_leaves_is_told_which_keys_still_work(
    company: Company, sign_in_with_step_up: SignIn
) -> None:
    alice = company.administrator
    client = sign_in_with_step_up(alice)
    created = make_service_key(company, KeyScope.USAGE_READ)
    with tenant_scope(company.tenant_id):
        keys = ApiKey.objects.filter(lookup_id=created.key.lookup_id)
        keys.update(issued_by_id=uuid.UUID(alice.user_id))
    path = f"/members/{alice.user_id}/remove"

    confirmation = client.get(path).content.decode()
    answer = client.post(path, {"reason": "Left"})

    texts = [str(message) for message in get_messages(answer.wsgi_request)]
    assert "<title>Leave " in confirmation
    assert texts[0].startswith("You left ")
    assert texts[1].startswith("1 service key whose secret you know still works.")

"""API keys, as each role and another tenant see them."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.api_keys.playground import create_playground_key
from tenants.identity.api_keys.queries import KeyState, find_key
from tenants.models import ApiKey, AuditEntry, Membership
from tenants.policy.queries import find_policy_in_force
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company, make_key
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

# The forms that create and change keys. No key has the lookup ID Ab3dE6gH.
CHANGE_PATHS = "/keys/new", "/keys/policy", "/keys/Ab3dE6gH/rotate", "/keys/Ab3dE6gH/revoke"
HTMX_HEADERS = {"HX-Request": "true"}


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.fixture
def client(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the administrator's browser."""
    return sign_in_with_step_up(company.administrator)


def list_page(client: Client, **query: str) -> str:
    return client.get("/keys", query).content.decode()


def keys_of(company: Company) -> list[ApiKey]:
    with tenant_scope(company.tenant_id):
        return list(ApiKey.objects.filter(tenant_id=company.tenant_id).order_by("created_at"))


@pytest.mark.parametrize("path", ["/keys", "/keys/Ab3dE6gH", *CHANGE_PATHS])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"


@pytest.mark.parametrize(
    ("role", "status", "may_create"),
    [
        (Role.OWNER, 200, True),
        (Role.ADMINISTRATOR, 200, True),
        (Role.BILLING, 403, False),
        (Role.AUDITOR, 200, False),
        (Role.DEVELOPER, 302, False),  # redirected to the page of their own keys
    ],
)
def test_each_role_sees_only_the_actions_that_it_may_take(
    cast: Cast, sign_in: SignIn, role: Role, status: int, may_create: bool
) -> None:
    make_key(cast.acme, cast.acme.people[role])

    answer = sign_in(cast.acme.people[role]).get("/keys")

    assert answer.status_code == status
    assert ('href="/keys/new"' in answer.content.decode()) == may_create
    assert ("/revoke" in answer.content.decode()) == may_create


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
@pytest.mark.parametrize("path", CHANGE_PATHS)
def test_roles_that_may_not_change_keys_are_refused_the_forms(
    cast: Cast, sign_in_with_step_up: SignIn, role: Role, path: str
) -> None:
    client = sign_in_with_step_up(cast.acme.people[role])
    # No key has this lookup ID. Developers, who may revoke their own keys, therefore get 404.
    status = 404 if role is Role.DEVELOPER and path.endswith("/revoke") else 403

    assert client.get(path).status_code == status
    assert client.post(path).status_code == status


def test_a_developer_sees_only_their_own_keys(company: Company, sign_in: SignIn) -> None:
    own_id = make_key(company, company.developer).key.lookup_id
    other_id = make_key(company, company.administrator).key.lookup_id
    client = sign_in(company.developer)

    page = client.get("/account/keys").content.decode()

    assert own_id in page
    assert other_id not in page
    assert client.get(f"/keys/{own_id}").status_code == 200
    assert client.get(f"/keys/{other_id}").status_code == 404


@pytest.mark.parametrize("path", ["", "/rotate", "/revoke"])
def test_another_tenants_key_is_not_found(
    company: Company, cast: Cast, sign_in_with_step_up: SignIn, path: str
) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id
    client = sign_in_with_step_up(cast.globex.administrator)

    foreign_answer = client.get(f"/keys/{lookup_id}{path}")
    unknown_answer = client.get(f"/keys/nothing1{path}")

    assert foreign_answer.status_code == unknown_answer.status_code == 404
    assert foreign_answer.content == unknown_answer.content
    assert lookup_id not in list_page(client)


def test_another_tenant_cannot_revoke_a_key(
    company: Company, cast: Cast, sign_in_with_step_up: SignIn
) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id

    answer = sign_in_with_step_up(cast.globex.administrator).post(f"/keys/{lookup_id}/revoke")

    assert answer.status_code == 404
    assert keys_of(company)[0].revoked_at is None


def test_the_list_is_filtered_and_sorted_by_its_query(company: Company, client: Client) -> None:
    make_key(company, company.developer, name="Anvil")
    make_key(company, company.developer, name="Bellows")
    create_playground_key(actor=company.developer.actor, now=timezone.now())

    def names(**query: str) -> list[str]:
        return re.findall(r'class="name"[^>]*>([^<]+)<', list_page(client, **query))

    assert names() == ["Bellows", "Anvil"]  # playground keys are listed only on request
    assert names(sort="name") == ["Anvil", "Bellows"]
    assert names(sort="-name") == ["Bellows", "Anvil"]
    assert names(sort="pink") == ["Bellows", "Anvil"]  # unknown values are ignored
    assert names(q="anv") == ["Anvil"]
    assert names(kind="svc") == []
    assert names(kind="pink") == ["Bellows", "Anvil"]
    assert names(kind="playground") == ["Playground"]
    assert names(state="revoked") == []
    assert names(concern="leaked") == []


def test_a_full_page_links_to_the_next_page(company: Company, client: Client) -> None:
    for number in range(26):  # a page has 25
        make_key(company, company.developer, name=f"Key {number:02}")

    first = list_page(client, sort="name")
    link = re.search(r'href="([^"]*cursor=[^"]*)"', first)
    assert link is not None
    second = client.get(link[1].replace("&amp;", "&")).content.decode()

    assert "Key 24" in first
    assert "Key 25" not in first
    assert "Key 25" in second
    assert "Key 24" not in second


def test_an_invalid_cursor_is_rejected(client: Client) -> None:
    assert client.get("/keys", {"cursor": "x"}).status_code == 400


def test_htmx_gets_the_list_without_the_page_around_it(client: Client) -> None:
    assert "<html" not in client.get("/keys", headers=HTMX_HEADERS).content.decode()
    assert "<html" in list_page(client)


def test_the_csv_file_obeys_the_filter_and_escapes_formulas(
    company: Company, client: Client
) -> None:
    make_key(company, company.developer, name="=1+1")
    make_key(company, company.developer, name="Bellows")

    answer = client.get("/keys", {"as": "csv", "q": "1+1"})

    lines = answer.content.decode().splitlines()
    assert answer["Content-Type"].startswith("text/csv")
    assert len(lines) == 2
    assert ",'=1+1," in lines[1]


def test_the_page_states_that_there_are_no_keys(client: Client) -> None:
    assert "No keys yet" in list_page(client)
    assert "No keys found" in list_page(client, q="x")


def test_the_list_runs_few_queries(company: Company, client: Client) -> None:
    for number in range(20):
        make_key(company, company.developer, name=f"Key {number}")

    with few_queries():
        page = list_page(client)

    assert "Key 7" in page


def test_revoking_asks_for_confirmation_and_records_the_reason(
    company: Company, client: Client
) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id

    confirmation = client.get(f"/keys/{lookup_id}/revoke").content.decode()
    done = client.post(f"/keys/{lookup_id}/revoke", {"reason": "lost"}, follow=True)

    assert "Revoke Laptop?" in confirmation
    assert "Laptop revoked" in done.content.decode()
    key = find_key(actor=company.administrator.actor, lookup_id=lookup_id, now=timezone.now())
    assert key.state is KeyState.REVOKED
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="key.revoked")
    assert (entry.reason, entry.address) == ("lost", "127.0.0.1")


def test_a_revoked_key_has_no_button_and_its_name_is_no_markup(
    company: Company, client: Client
) -> None:
    lookup_id = make_key(company, company.developer, name="<i>Laptop</i>").key.lookup_id
    button = f'href="/keys/{lookup_id}/revoke"'
    before = list_page(client)

    done = client.post(f"/keys/{lookup_id}/revoke", {"reason": "lost"}, follow=True)
    after = list_page(client)

    assert "&lt;i&gt;Laptop&lt;/i&gt; revoked" in done.content.decode()
    assert "<i>Laptop" not in done.content.decode()
    assert "&lt;i&gt;Laptop" in after
    assert (button in before, button in after) == (True, False)


def test_revoking_a_key_requires_a_step_up(company: Company, sign_in: SignIn) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id

    answer = sign_in(company.administrator).post(f"/keys/{lookup_id}/revoke")

    assert answer["Location"].startswith("/account/confirm?next=")
    assert keys_of(company)[0].revoked_at is None


def test_a_keys_page_warns_that_the_key_is_leaked_and_unowned(
    company: Company, client: Client
) -> None:
    lookup_id = make_key(company, company.administrator).key.lookup_id
    with tenant_scope(company.tenant_id):
        ApiKey.objects.update(
            owner_id=None, issued_by_id=company.developer.user_id, leaked_at=timezone.now()
        )

    with few_queries():
        page = client.get(f"/keys/{lookup_id}").content.decode()

    assert f"{company.developer.email} was responsible for this key" in page
    assert "Leaked" in page


def test_the_owner_of_a_key_may_be_an_erased_user(company: Company, client: Client) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id
    with tenant_scope(company.tenant_id):
        Membership.objects.filter(user_id=company.developer.user_id).update(
            erased_at=timezone.now()
        )

    for page in (list_page(client), client.get(f"/keys/{lookup_id}").content.decode()):
        assert "Erased user" in page
        assert "None (service key)" not in page
        assert company.developer.email not in page


def test_saving_the_key_policy_adds_a_policy_version(company: Company, client: Client) -> None:
    before = find_policy_in_force(tenant_id=company.tenant_id)
    form = {
        "max_key_lifetime_days": "30",
        "revoke_idle_keys_after_days": "",
        "version": before.version,
    }

    refused_form = client.post("/keys/policy", form)  # without a reason
    done = client.post("/keys/policy", form | {"reason": "Audit"}, follow=True)
    outdated = client.post("/keys/policy", form | {"reason": "Audit"})

    assert refused_form.status_code == 400
    assert 'value="30"' in refused_form.content.decode()
    assert "Key policy applied." in done.content.decode()
    assert outdated.status_code == 400
    policy_version = find_policy_in_force(tenant_id=company.tenant_id)
    assert policy_version.version == before.version + 1
    assert policy_version.policy.max_key_lifetime_days == 30
    assert policy_version.policy.features == before.policy.features

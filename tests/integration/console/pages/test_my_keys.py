"""The page "Your keys and devices", on which users create and revoke their own API keys."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.api_key import KEY_PATTERN, parse_key
from tenants.base.permissions import Role
from tenants.identity.api_keys.queries import KeyState, find_key, is_key_active
from tenants.identity.api_keys.scopes import serialize_scopes
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company, make_key
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def ada(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the developer's browser."""
    return sign_in_with_step_up(company.developer)


def change_policy(company: Company, **changes: Any) -> None:
    current_policy = find_policy_in_force(tenant_id=company.tenant_id).policy
    set_policy(
        actor=company.platform,
        document=serialize_policy(current_policy) | changes,
        reason="a test",
        now=timezone.now(),
    )


def filled_form(client: Client, **changes: Any) -> dict[str, Any]:
    """Return the fields of a valid form with a new form token, and with these changes."""
    match = re.search(
        rb'name="form_token" value="([^"]+)"', client.get("/account/keys/new").content
    )
    assert match is not None
    form = {"form_token": match[1].decode(), "name": "Laptop", "lifetime": "30"}
    return form | {"modes": ["inference:inline"]} | changes


@pytest.mark.parametrize(
    ("role", "status"),
    [
        (Role.OWNER, 200),
        (Role.ADMINISTRATOR, 200),
        (Role.DEVELOPER, 200),
        (Role.BILLING, 403),
        (Role.AUDITOR, 403),
    ],
)
def test_only_roles_that_may_have_keys_open_the_page(
    cast: Cast, sign_in: SignIn, role: Role, status: int
) -> None:
    client = sign_in(cast.acme.people[role])

    with few_queries():
        assert client.get("/account/keys").status_code == status
    assert client.get("/account/keys/new").status_code == status
    # 302: a form without its token creates no key.
    assert client.post("/account/keys/new").status_code == (403 if status == 403 else 302)


def test_anonymous_visitors_are_redirected_to_sign_in() -> None:
    assert Client().get("/account/keys")["Location"] == "/sign-in?next=/account/keys"


def test_a_developer_creates_a_key_and_sees_it_once(company: Company, ada: Client) -> None:
    page = ada.post("/account/keys/new", filled_form(ada)).content.decode()

    assert "Your keys and devices" in re.findall(r'class="back"[^>]*>.*?</a>', page, re.DOTALL)[0]
    match = KEY_PATTERN.search(page)
    assert match is not None
    key = parse_key(match[0])
    assert key is not None
    assert is_key_active(tenant_id=company.tenant_id, key=key, now=timezone.now())
    found_key = find_key(actor=company.platform, lookup_id=key.lookup_id, now=timezone.now())
    assert (found_key.owner_email, found_key.name) == (company.developer.email, "Laptop")
    assert serialize_scopes(found_key.scopes) == ["inference:inline"]
    assert match[0] not in ada.get("/account/keys").content.decode()


def test_a_form_submitted_twice_creates_one_key(company: Company, ada: Client) -> None:
    form = filled_form(ada)
    ada.post("/account/keys/new", form)

    second_page = ada.post("/account/keys/new", form, follow=True).content.decode()

    assert "We did not create a second key." in second_page
    assert second_page.count('class="name"') == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"modes": []},
        {"modes": ["inference"]},
        {"modes": ["usage:read"]},
        {"lifetime": "never"},
        {"lifetime": "365"},
        {"networks": "192.0.2.1/24"},
    ],
)
def test_values_that_are_invalid_or_forbidden_by_the_policy_are_refused(
    company: Company, ada: Client, changes: dict[str, Any]
) -> None:
    change_policy(company, max_key_lifetime_days=30)

    response = ada.post("/account/keys/new", filled_form(ada, **changes))

    page = response.content.decode()
    assert response.status_code == 400
    (wrong_field,) = re.findall(r'field-wrong">(.*?)class="wrong"', page, re.DOTALL)
    (changed_field,) = changes  # the name of the only one
    assert f'name="{changed_field}"' in wrong_field
    assert KEY_PATTERN.search(page) is None


def test_if_the_policy_allows_no_own_keys_the_page_says_whom_to_ask(
    company: Company, ada: Client
) -> None:
    make_key(company, company.developer, name="Given")
    change_policy(company, allows_own_keys=False)

    page = ada.get("/account/keys").content.decode()

    assert "Ask an administrator" in page
    assert "Given" in page
    assert 'href="/account/keys/new"' not in page
    assert ada.get("/account/keys/new").status_code == 403
    assert "Ask an administrator" in ada.get("/onboarding").content.decode()


def test_only_own_keys_are_listed_and_revoked(company: Company, ada: Client, cast: Cast) -> None:
    own_id = make_key(company, company.developer, name="Mine").key.lookup_id
    other_ids = [
        make_key(company, company.administrator).key.lookup_id,
        make_key(cast.globex, cast.globex.developer).key.lookup_id,
    ]

    page = ada.get("/account/keys").content.decode()
    revoked = ada.post(f"/keys/{own_id}/revoke", {"reason": "lost"})
    statuses = [ada.post(f"/keys/{other_id}/revoke").status_code for other_id in other_ids]

    assert own_id in page
    assert not any(other_id in page for other_id in other_ids)
    assert revoked["Location"] == "/account/keys"
    assert statuses == [404, 404]
    key = find_key(actor=company.platform, lookup_id=own_id, now=timezone.now())
    assert key.state is KeyState.REVOKED


def test_the_list_of_the_tenants_keys_redirects_a_developer_to_their_own(ada: Client) -> None:
    assert ada.get("/keys")["Location"] == "/account/keys"


def test_the_csv_file_has_only_own_keys(company: Company, ada: Client) -> None:
    make_key(company, company.administrator)
    make_key(company, company.developer, name="Mine")

    lines = ada.get("/account/keys", {"as": "csv"}).content.decode().splitlines()

    assert len(lines) == 2
    assert ",Mine," in lines[1]

"""The pages that show a user's effective policy, and which rules block a request."""

from html import unescape

import pytest
from django.test import Client

from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.override_forms import save_override
from tests.integration.console.pages.queries import few_queries


@pytest.fixture
def company() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def alice(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in(company.administrator)


def test_an_administrator_sees_the_overrides_that_apply_to_another_user(
    company: Company, alice: Client
) -> None:
    ada = company.developer
    save_override(alice, ada, features_restriction="only", features=["inline"])

    with few_queries():
        page = alice.get("/policies/effective", {"user_email": ada.email}).content.decode()

    assert f'<span class="name">{ada.email}</span>' in page  # names the override


def test_a_developer_sees_only_their_own_effective_policy(
    company: Company, alice: Client, sign_in: SignIn
) -> None:
    ada = company.developer
    save_override(alice, ada, features_restriction="only", features=["inline"])
    client = sign_in(ada)

    own_policy = client.get("/policies/effective").content.decode()
    colleagues_policy = client.get(
        "/policies/effective", {"user_email": company.administrator.email}
    )

    assert f'<span class="name">{ada.email}</span>' in own_policy
    assert colleagues_policy.status_code == 403


def test_an_unknown_user_gets_an_error_message(alice: Client) -> None:
    query = {"user_email": "nobody@nowhere.example", "mode": "inline", "path": "x"}

    for path in ("/policies/effective", "/policies/explain"):
        answer = alice.get(path, query)
        assert "This user is not a member of the tenant." in answer.content.decode()


def test_an_exclusion_is_explained_by_rule_override_and_version(
    company: Company, alice: Client
) -> None:
    ada = company.developer
    save_override(alice, ada, content_exclusion="payments: [keys/**]")
    query = {
        "user_email": ada.email,
        "mode": "inline",
        "repository": "payments",
        "path": "keys/.env",
    }

    with few_queries():
        page = unescape(alice.get("/policies/explain", query).content.decode())

    assert '"payments": "keys/**"' in page
    assert f'<td data-label="Policy level">{ada.email}</td>' in page
    assert '"*": "**/.env"' in page
    assert '<td data-label="Policy level">Tenant</td>' in page
    assert 'href="/policies/versions/1"' in page


def test_a_path_that_no_rule_excludes_is_shown_as_allowed(alice: Client) -> None:
    query = {"mode": "inline", "repository": "shop", "path": "a.py"}

    part = alice.get("/policies/explain", query, headers={"HX-Request": "true"})

    assert "Allowed for" in part.content.decode()
    assert "<html" not in part.content.decode()


def test_a_mode_that_is_off_is_named_by_its_label(company: Company, alice: Client) -> None:
    save_override(alice, company.developer, features_restriction="only", features=["inline"])
    query = {"user_email": company.developer.email, "mode": "fim", "path": "a.py"}

    page = alice.get("/policies/explain", query).content.decode()

    assert "Fill in the middle is off." in page
    assert "fim is off." not in page

"""The effective policy of a user, and the reason why a path is excluded, on the console's pages."""

from html import unescape

import pytest
from django.test import Client

from tests.fixtures.companies import ACME, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.layer_forms import say
from tests.integration.console.pages.queries import few_queries


@pytest.fixture
def company() -> Company:
    return make_company("acme", ACME)


@pytest.fixture
def alice(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.administrator)


def test_an_administrator_sees_what_holds_for_another_and_who_decided(
    company: Company, alice: Client
) -> None:
    ada = company.developer
    say(alice, ada, features_which="only", features=["inline"])

    with few_queries():
        page = alice.get("/policies/effective", {"user_email": ada.email}).content.decode()

    assert f"user:{ada.email}" in page


def test_a_developer_asks_about_himself_alone(
    company: Company, alice: Client, sign_in: SignIn
) -> None:
    ada = company.developer
    say(alice, ada, features_which="only", features=["inline"])
    client = sign_in(ada)

    own = client.get("/policies/effective").content.decode()
    others = client.get("/policies/effective", {"user_email": company.administrator.email})

    assert f"user:{ada.email}" in own
    assert others.status_code == 403


def test_nobody_is_asked_about_is_told(alice: Client) -> None:
    asked = {"user_email": "nobody@nowhere.example", "mode": "inline", "path": "x"}

    for path in ("/policies/effective", "/policies/explain"):
        answer = alice.get(path, asked)
        assert "This user is not a member of the tenant." in answer.content.decode()


def test_a_refusal_is_explained_by_rule_layer_and_version(company: Company, alice: Client) -> None:
    ada = company.developer
    say(alice, ada, content_exclusion="payments: [keys/**]")
    asked = {
        "user_email": ada.email,
        "mode": "inline",
        "repository": "payments",
        "path": "keys/.env",
    }

    with few_queries():
        page = unescape(alice.get("/policies/explain", asked).content.decode())

    assert '"payments": "keys/**"' in page
    assert f"user:{ada.email}" in page
    assert '"*": "**/.env"' in page
    assert 'href="/policies/versions/1"' in page


def test_what_nothing_is_against_is_said_to_be_sent(alice: Client) -> None:
    asked = {"mode": "inline", "repository": "shop", "path": "a.py"}

    part = alice.get("/policies/explain", asked, headers={"HX-Request": "true"})

    assert "Allowed for" in part.content.decode()
    assert "<html" not in part.content.decode()

"""The `next` parameter of every page leads to a page of the console, or is ignored."""

import html
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from tenants.base.permissions import Role
from tenants.identity.sso.metadata_fetch import fetch_metadata
from tenants.identity.sso.operations import SamlProviderConfig, set_saml_provider
from tests.fakes.saml_provider import SamlProvider
from tests.fixtures.companies import PASSWORD, Company, Person, make_company
from tests.integration.sign_in.browser import Browser, code_of, new_browser
from tests.integration.sign_in.by_provider import fresh_client, provider_url
from tests.integration.sign_in.openid_provider import OpenIdProvider

# Other sites, and texts that are not a printable path of at most 2,048 characters.
FOREIGN_TARGETS = [
    "foo",
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "/\r\nSet-Cookie: a=b",
    "/%0d%0aSet-Cookie: a=b",
    "javascript:alert(1)",
    "/" + "a" * 5_000,
    "/\0",
]
for_each_foreign_target = pytest.mark.parametrize("target", FOREIGN_TARGETS)
OWN_PAGE = "/no-such-page?a=b"


@pytest.fixture
def person() -> Person:
    """Return a user with a password."""
    return make_company("hooli", {Role.OWNER: "hank"}).people[Role.OWNER]


@pytest.fixture
def browser(person: Person) -> Browser:
    """Return the user's signed-in browser."""
    browser_of_person = new_browser(person)
    assert browser_of_person.sign_in() == "/"
    return browser_of_person


@pytest.mark.parametrize("path", ["/sign-in", "/sign-in/passkey"])
@pytest.mark.parametrize(
    ("target", "expected_location"),
    [*((target, "/") for target in FOREIGN_TARGETS), (OWN_PAGE, OWN_PAGE)],
)
def test_the_sign_in_page_redirects_a_signed_in_user_only_to_own_pages(
    browser: Browser, path: str, target: str, expected_location: str
) -> None:
    response = browser.client.get(path, {"next": target})

    assert (response.status_code, response["Location"]) == (302, expected_location)


@pytest.mark.parametrize(
    ("target", "expected_location"),
    [*((target, "/") for target in FOREIGN_TARGETS), (OWN_PAGE, OWN_PAGE)],
)
def test_a_password_sign_in_redirects_only_to_own_pages(
    person: Person, target: str, expected_location: str
) -> None:
    form = {"email": person.email, "password": PASSWORD}

    response = fresh_client().post("/sign-in", form | {"next": target})

    assert (response.status_code, response["Location"]) == (302, expected_location)


@for_each_foreign_target
def test_the_sign_in_form_contains_no_foreign_target(target: str) -> None:
    page = fresh_client().get("/sign-in", {"next": target}).content.decode()

    assert _hidden_next(page) == "/"


@for_each_foreign_target
def test_the_reauthentication_form_contains_no_foreign_target(
    browser: Browser, target: str
) -> None:
    page = browser.client.get("/account/reauthenticate", {"next": target}).content.decode()

    assert _hidden_next(page) == "/"


@for_each_foreign_target
def test_the_passkey_form_contains_no_foreign_target(target: str) -> None:
    page = fresh_client().post("/sign-in/passkey", {"next": target}).content.decode()

    assert _hidden_next(page) == "/"


@pytest.mark.parametrize("target", [*FOREIGN_TARGETS, OWN_PAGE])
def test_a_step_up_by_password_redirects_only_to_own_pages(browser: Browser, target: str) -> None:
    response = browser.client.post("/account/confirm", {"password": PASSWORD, "next": target})

    assert response.status_code == 302
    assert response["Location"] == (OWN_PAGE if target == OWN_PAGE else "/")


@pytest.mark.parametrize("target", [*FOREIGN_TARGETS, OWN_PAGE])
def test_a_step_up_by_code_redirects_only_to_own_pages(browser: Browser, target: str) -> None:
    secret = browser.set_up_app()
    form = {"code": code_of(secret, later_by=1), "next": target}

    response = browser.client.post("/account/confirm/code", form)

    assert response.status_code == 302
    assert response["Location"] == (OWN_PAGE if target == OWN_PAGE else "/")


@for_each_foreign_target
def test_an_openid_sign_in_redirects_only_to_own_pages(
    owner: Person, provider: OpenIdProvider, target: str
) -> None:
    client = fresh_client()
    redirect_url = provider.authorize(provider_url(client, owner.email, next=target))
    provider.claims = {"email": owner.email}

    response = client.get(f"{redirect_url}&{urlencode({'next': target})}")

    assert (response.status_code, response["Location"]) == (302, "/")


@for_each_foreign_target
def test_a_saml_relay_state_is_never_followed(company: Company, owner: Person, target: str) -> None:
    idp = SamlProvider()
    provider_config = SamlProviderConfig(idp.metadata(), url=None, fetch=fetch_metadata)
    set_saml_provider(actor=company.platform, config=provider_config, now=timezone.now())
    client = fresh_client()

    response = _sign_in_with_saml(client, idp, company, {"email": owner.email, "next": target})

    assert (response.status_code, response["Location"]) == (302, "/")


def _hidden_next(page: str) -> str:
    """Return the value of the form's hidden field `next`."""
    match = re.search(r'name="next" value="([^"]*)"', page)
    assert match is not None, page
    return match[1]


def _sign_in_with_saml(
    client: Client, idp: SamlProvider, company: Company, form: dict[str, str]
) -> Any:
    page = client.post("/sign-in", {"single": "yes", **form}).content.decode()
    link = re.search(r'href="(https://login\.example\.com[^"]+)"', page)
    assert link is not None
    assertion = idp.assertion_for(html.unescape(link[1]), form["email"])
    saml_form = {"SAMLResponse": idp.encode_response(assertion), "RelayState": form["next"]}
    provider_response = fresh_client().post(f"/sign-in/saml/{company.tenant_id}", saml_form)
    return client.get(f"{provider_response['Location']}&{urlencode({'RelayState': form['next']})}")

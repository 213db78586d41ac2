"""Sign-ins while Redis is down: pages that need Redis reject them, and say why.

A passkey works as a second factor, because that page needs no Redis.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from tenants.base import redis_connection
from tenants.base.permissions import Role
from tests.fakes.passkey import SoftPasskey
from tests.fakes.saml_provider import SamlProvider
from tests.fixtures.companies import PASSWORD, Person, make_company
from tests.integration.sign_in.browser import Browser, code_of, new_browser
from tests.integration.sign_in.by_provider import fresh_client
from tests.integration.sign_in.by_saml import make_saml_company, request_assertion
from tests.integration.sign_in.with_passkey import Browser as PasskeyBrowser
from tests.integration.sign_in.with_passkey import read_challenge

MISSING_SOCKET = "unix:///nonexistent/valkey.sock"


@contextmanager
def no_redis() -> Iterator[None]:
    """Let the console connect to a socket that does not exist."""
    caches = {"default": {**settings.CACHES["default"], "LOCATION": MISSING_SOCKET}}
    redis_connection.connect_to_redis.cache_clear()
    try:
        with override_settings(REDIS_URL=MISSING_SOCKET, CACHES=caches):
            yield
    finally:
        redis_connection.connect_to_redis.cache_clear()


@pytest.fixture
def owner() -> Person:
    return make_company("initech", {Role.OWNER: "olga"}).people[Role.OWNER]


@pytest.fixture
def browser(owner: Person) -> Browser:
    return new_browser(owner)


def assert_unavailable(response: Any) -> None:
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert b"Redis does not respond" in response.content


def test_a_code_cannot_complete_a_sign_in_without_redis(browser: Browser, owner: Person) -> None:
    browser.sign_in()
    secret = browser.set_up_app()
    other_browser = new_browser(owner)
    other_browser.sign_in()

    with no_redis():
        response = other_browser.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert_unavailable(response)
    assert not other_browser.is_signed_in()


def test_a_step_up_by_code_is_unavailable_without_redis(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up_app()

    with no_redis():
        response = browser.client.post("/account/confirm/code", {"code": code_of(secret)})

    assert_unavailable(response)


def test_a_step_up_by_password_is_unavailable_without_redis(browser: Browser) -> None:
    browser.sign_in()

    with no_redis():
        response = browser.client.post("/account/confirm", {"password": PASSWORD})

    assert_unavailable(response)


def test_a_passkey_sign_in_is_unavailable_without_redis(owner: Person) -> None:
    browser, passkey = PasskeyBrowser(owner), SoftPasskey()
    browser.sign_in()
    browser.add(passkey)
    browser = PasskeyBrowser(owner)
    credential = passkey.get(browser.request_challenge())

    with no_redis():
        response = browser.post_response(credential)

    assert_unavailable(response)


@pytest.mark.parametrize("page", ["/sign-in/code", "/account/confirm/passkey"])
def test_a_passkey_works_as_a_second_factor_without_redis(owner: Person, page: str) -> None:
    browser, passkey = PasskeyBrowser(owner), SoftPasskey()
    browser.sign_in()
    browser.add(passkey)
    if page == "/sign-in/code":
        browser = PasskeyBrowser(owner)
        browser.sign_in()
    challenge = read_challenge(browser.client.get(page))

    with no_redis():
        response = browser.client.post(page, {"credential": json.dumps(passkey.get(challenge))})

    assert response["Location"] == "/"


def test_a_saml_sign_in_is_unavailable_without_redis() -> None:
    idp = SamlProvider()
    company = make_saml_company(idp)
    path = f"/sign-in/saml/{company.tenant_id}"
    email = company.people[Role.OWNER].email
    saml_response = idp.encode_response(request_assertion(fresh_client(), idp, email))

    with no_redis():
        responses = [
            fresh_client().post(path, {"SAMLResponse": saml_response}),
            fresh_client().get(f"{path}/done?ticket=x"),
        ]

    for response in responses:
        assert response.status_code == 503
        assert b"Redis does not respond" in response.content

"""Passkeys in a real browser, with a virtual authenticator of the DevTools protocol.

Only a browser can show that our script runs under our content security policy, and that it sends a
valid response.
"""

import re

import pytest
from allauth.mfa.models import Authenticator
from playwright.sync_api import Page, expect

from tenants.base.permissions import Role
from tests.browser.tabs import Tabs
from tests.fixtures.companies import PASSWORD, Person, make_company

_BY_PASSKEY = "button[formaction]"


@pytest.fixture
def page(tabs: Tabs) -> Page:
    return tabs.open()


@pytest.fixture
def owner() -> Person:
    return make_company("initech", {Role.OWNER: "olga"}).people[Role.OWNER]


def plug_in(page: Page, *, verifies_user: bool = True) -> None:
    """Add a virtual authenticator.

    With `verifies_user` it is built in and verifies the user, for example by fingerprint. Otherwise
    it is a USB security key that does not verify the user.
    """
    options = {
        "protocol": "ctap2",
        "transport": "internal" if verifies_user else "usb",
        "hasResidentKey": verifies_user,
        "hasUserVerification": verifies_user,
        "isUserVerified": verifies_user,
        "automaticPresenceSimulation": True,
    }
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def sign_in(page: Page, person: Person) -> None:
    page.goto("/sign-in")
    page.fill("input[name=email]", person.email)
    page.fill("input[name=password]", PASSWORD)
    page.click("button:not([name]):not([formaction])")  # not single sign-on, not the passkey


def add_passkey(page: Page, name: str) -> None:
    page.goto("/account/passkeys/new")
    page.fill("input[name=password]", PASSWORD)
    page.click("main form button")
    page.fill("input[name=name]", name)
    page.click("form[data-passkey] button")
    page.wait_for_url("**/account/recovery-codes")


def sign_out(page: Page) -> None:
    """Submit the menu's sign-out form."""
    page.goto("/account/second-factor")
    page.eval_on_selector("form[action='/sign-out']", "form => form.requestSubmit()")
    page.wait_for_url("**/sign-in")


def test_a_created_passkey_signs_its_user_in(page: Page, owner: Person) -> None:
    plug_in(page)
    sign_in(page, owner)
    add_passkey(page, "Laptop")
    sign_out(page)

    page.click(_BY_PASSKEY)

    expect(page).to_have_url("/")
    row = Authenticator.objects.get(user_id=owner.user_id, type="webauthn")
    assert (row.wrap().name, row.wrap().is_passwordless) == ("Laptop", True)


def test_a_security_key_is_the_second_factor_after_the_password(page: Page, owner: Person) -> None:
    plug_in(page, verifies_user=False)
    sign_in(page, owner)
    add_passkey(page, "Key ring")
    sign_out(page)

    sign_in(page, owner)

    expect(page).to_have_url("/")
    row = Authenticator.objects.get(user_id=owner.user_id, type="webauthn")
    assert row.last_used_at is not None
    assert row.wrap().is_passwordless is False


def test_without_a_passkey_the_page_shows_an_error_and_an_alternative(page: Page) -> None:
    plug_in(page)
    page.goto("/sign-in")

    page.click(_BY_PASSKEY)

    expect(page.locator("[data-passkey-error]")).to_have_text("No passkey was used. Try again.")
    page.click("main a.button")
    expect(page).to_have_url(re.compile(r"/sign-in(\?|$)"))


def test_no_passkey_is_offered_at_an_ip_address(page: Page, console_url: str) -> None:
    page.goto(f"{console_url.replace('localhost', '127.0.0.1')}/sign-in")

    expect(page.locator("input[name=password]")).to_be_visible()
    expect(page.locator(_BY_PASSKEY)).to_be_hidden()

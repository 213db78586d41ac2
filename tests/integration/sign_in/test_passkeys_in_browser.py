"""Passkeys in a real browser, which alone can say whether our script runs under our own policy and
whether what it sends is what a browser answers. The device in it is the DevTools protocol's."""

from collections.abc import Iterator

import pytest
from allauth.mfa.models import Authenticator

from tenants.members.permissions import Role
from tests.cast import PASSWORD, Person, make_company
from tests.stack.chromium import CHROMIUM, Page, chromium
from tests.stack.console import console
from tests.stack.services import Services

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="the system has neither chromium nor google-chrome"
)


@pytest.fixture(scope="module")
def url(services: Services) -> Iterator[str]:
    with console(services) as port:
        yield f"http://localhost:{port}"


@pytest.fixture
def page() -> Iterator[Page]:
    with chromium() as opened:
        yield opened
        assert opened.complaints == []


@pytest.fixture
def owner() -> Person:
    return make_company("initech", {Role.OWNER: "olga"}).people[Role.OWNER]


def plug_in(page: Page, *, knows_its_user: bool = True) -> None:
    """A device for passkeys; one that knows its user asks for his finger, and it is his."""
    options = {
        "protocol": "ctap2",
        "transport": "internal" if knows_its_user else "usb",
        "hasResidentKey": knows_its_user,
        "hasUserVerification": knows_its_user,
        "isUserVerified": knows_its_user,
        "automaticPresenceSimulation": True,
    }
    page.send("WebAuthn.enable")
    page.send("WebAuthn.addVirtualAuthenticator", options=options)


def sign_in(page: Page, url: str, person: Person) -> None:
    page.open(f"{url}/sign-in")
    page.fill("input[name=email]", person.email)
    page.fill("input[name=password]", PASSWORD)
    page.click("button:not([name]):not([formaction])")


def add_passkey(page: Page, url: str, name: str) -> None:
    page.open(f"{url}/account/passkeys/new")
    page.fill("input[name=password]", PASSWORD)
    page.click("form button")
    page.fill("input[name=name]", name)
    page.click("form[data-passkey] button")
    page.until("location.pathname", "/account/recovery-codes")


def sign_out(page: Page, url: str) -> None:
    page.open(f"{url}/account/second-factor")
    page.click("form button")
    page.until("location.pathname", "/sign-in")


def test_a_passkey_is_made_and_signs_in_alone(page: Page, url: str, owner: Person) -> None:
    plug_in(page)
    sign_in(page, url, owner)
    page.until("location.pathname", "/")
    add_passkey(page, url, "Laptop")
    sign_out(page, url)

    page.click("button[formaction]")

    page.until("location.pathname", "/")
    page.until("document.body.innerText.includes('API keys')", True)
    row = Authenticator.objects.get(user_id=owner.user_id, type="webauthn")
    assert (row.wrap().name, row.wrap().is_passwordless) == ("Laptop", True)


def test_a_security_key_is_asked_for_after_the_password(
    page: Page, url: str, owner: Person
) -> None:
    plug_in(page, knows_its_user=False)
    sign_in(page, url, owner)
    page.until("location.pathname", "/")
    add_passkey(page, url, "Key ring")
    sign_out(page, url)

    sign_in(page, url, owner)

    page.until("document.body.innerText.includes('API keys')", True)
    row = Authenticator.objects.get(user_id=owner.user_id, type="webauthn")
    assert row.last_used_at is not None
    assert row.wrap().is_passwordless is False


def test_without_a_passkey_the_page_says_so_and_another_way_is_left(
    page: Page, url: str, owner: Person
) -> None:
    plug_in(page)
    page.open(f"{url}/sign-in")

    page.click("button[formaction]")

    page.until(
        "document.querySelector('[data-passkey-error]').innerText",
        "No passkey was used. Try again.",
    )
    page.click("a.button")
    page.until("location.pathname", "/sign-in")


def test_at_a_network_address_no_passkey_is_offered(page: Page, url: str) -> None:
    page.open(f"{url.replace('localhost', '127.0.0.1')}/sign-in")

    assert page.run("document.querySelector('[formaction]').offsetParent === null") is True

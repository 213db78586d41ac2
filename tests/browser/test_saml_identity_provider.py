"""Single sign-on in a browser, with a SAML identity provider that we did not write."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import Error as PlaywrightError

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import AuditEntry
from tests.browser.chromium import ASYNC_SAFE
from tests.browser.saml_provider import PySaml2Provider, SigningKey, write_signing_key
from tests.browser.sessions import session_of
from tests.browser.tabs import Tabs, tabs_of
from tests.fixtures.companies import Company, make_company
from tests.fixtures.users import make_colleague, make_domain
from tests.stack.console import console
from tests.stack.ports import free_port
from tests.stack.services import Services

pytestmark = pytest.mark.deep

_TIMEOUT_MS: Final = 60_000


@dataclass
class Site:
    """A company, its provider, and a console, which does not know the provider until `set_up`."""

    company: Company
    provider: PySaml2Provider
    tabs: Tabs
    owners_page: Page  # of an owner who signed in a moment ago, so that no step-up is required
    email: str  # of a member

    def set_up(self) -> None:
        """Enter the URL of the provider's metadata, as an owner."""
        self.owners_page.goto("/sign-in-settings")
        self.owners_page.get_by_role("link", name="SAML").click()
        self.owners_page.get_by_label("Metadata URL").fill(self.provider.metadata_url)
        self.owners_page.get_by_role("button", name="Save provider").click()
        expect(self.owners_page.locator("main")).to_contain_text(self.provider.metadata_url)

    def sign_in(self) -> Page:
        """Sign in through the provider's own page, in a new browser."""
        page = self.open_provider()
        page.get_by_label("Address").fill(self.email)
        page.get_by_label("Password").fill("any")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda url: not self.provider.is_at(url), timeout=_TIMEOUT_MS)
        return page

    def open_provider(self) -> Page:
        page = self.tabs.open()
        page.goto("/sign-in")
        page.fill("input[name=email]", self.email)
        page.click("button[name=single]")
        page.wait_for_url(f"{self.provider.base_url}/**", timeout=_TIMEOUT_MS)
        return page

    def refusals(self) -> list[str]:
        """Return the reasons of refused sign-ins, from the audit log."""
        with tenant_scope(self.company.tenant_id):
            entries = AuditEntry.objects.filter(action="sign_in.refused").order_by("sequence")
            return [str((entry.after or {})["reason"]) for entry in entries]


@pytest.fixture(scope="module")
def console_at(services: Services, browser: Browser) -> Iterator[tuple[str, Tabs]]:
    port = free_port()
    url = f"http://localhost:{port}"
    settings = {
        "CARET_CONSOLE_PORT": str(port),
        "CARET_CONSOLE_URL": url,
        "CARET_ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
        **ASYNC_SAFE,
    }
    with console(services, **settings), tabs_of(browser, url) as tabs:
        yield url, tabs


@pytest.fixture
def signing_key(tmp_path: Path) -> SigningKey:
    return write_signing_key(tmp_path, "first")


@pytest.fixture
def site(console_at: tuple[str, Tabs]) -> Site:
    url, tabs = console_at
    company = make_company("initech", {Role.OWNER: "olga"})
    make_domain(company, f"{company.slug}.example", verified=True)
    provider = PySaml2Provider(f"{url}/sign-in/saml/{company.tenant_id}/metadata")
    owners_page = tabs.open(session_of(company.people[Role.OWNER]))
    return Site(company, provider, tabs, owners_page, make_colleague(company).email)


def expect_refusal(site: Site, page: Page, text: str) -> None:
    expect(page.locator(".notice-error")).to_contain_text(text)
    site.tabs.errors.clear()  # the browser reports the status of the page


def test_an_owner_sets_the_provider_up_and_a_member_signs_in(
    site: Site, signing_key: SigningKey
) -> None:
    with site.provider.running(signing_key):
        site.set_up()
        page = site.sign_in()

    expect(page.locator(".side-account")).to_contain_text(site.email)
    assert site.refusals() == []


def test_a_rotated_certificate_is_explained_and_works_after_an_update(
    site: Site, signing_key: SigningKey, tmp_path: Path
) -> None:
    with site.provider.running(signing_key):
        site.set_up()

    with site.provider.running(write_signing_key(tmp_path, "second")):
        page = site.sign_in()
        expect_refusal(site, page, "signed with a certificate that Caret does not know")
        assert site.refusals() == ["invalid_signature"]
        site.owners_page.goto("/")
        alert = site.owners_page.get_by_text("a certificate that its metadata does not contain")
        expect(alert).to_be_visible()
        site.set_up()
        page = site.sign_in()

    expect(page.locator(".side-account")).to_be_visible()
    site.owners_page.goto("/")
    expect(alert).to_have_count(0)


def test_a_provider_that_is_down_can_be_set_up_only_later(
    site: Site, signing_key: SigningKey
) -> None:
    site.owners_page.goto("/sign-in-settings/provider/saml")
    site.owners_page.get_by_label("Metadata URL").fill(site.provider.metadata_url)
    site.owners_page.get_by_role("button", name="Save provider").click()
    expect(site.owners_page.locator("main form")).to_contain_text("The endpoint did not respond")
    site.tabs.errors.clear()  # the browser reports the status of the page

    with site.provider.running(signing_key):
        site.set_up()


def test_a_provider_that_was_down_works_again(site: Site, signing_key: SigningKey) -> None:
    with site.provider.running(signing_key):
        site.set_up()
    with pytest.raises(PlaywrightError):
        site.open_provider()
    site.tabs.errors.clear()  # the browser reports the failed connection

    with site.provider.running(signing_key):
        page = site.sign_in()

    expect(page.locator(".side-account")).to_be_visible()


def test_sign_in_waits_for_a_slow_provider(site: Site, signing_key: SigningKey) -> None:
    with site.provider.running(signing_key, delay_s=3):
        site.set_up()
        page = site.sign_in()

    expect(page.locator(".side-account")).to_be_visible()


@pytest.mark.parametrize("clock_skew_s", [300, -300])
def test_a_clock_that_is_five_minutes_off_is_accepted(
    site: Site, signing_key: SigningKey, clock_skew_s: int
) -> None:
    """python3-saml allows five minutes; pysaml2's assertions are valid for 15 minutes."""
    with site.provider.running(signing_key, clock_skew_s=clock_skew_s):
        site.set_up()
        page = site.sign_in()

    expect(page.locator(".side-account")).to_be_visible()


def test_a_clock_that_is_seven_minutes_fast_is_refused(site: Site, signing_key: SigningKey) -> None:
    with site.provider.running(signing_key, clock_skew_s=420):
        site.set_up()
        page = site.sign_in()

    expect_refusal(site, page, "clock")
    assert site.refusals() == ["assertion_too_early"]

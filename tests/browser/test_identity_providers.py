"""Single sign-on in a browser, with an OpenID Connect provider that we did not write."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final

import pytest
from django.test import override_settings
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.sso.operations import OidcProviderConfig, set_provider
from tenants.models import AuditEntry, User
from tests.browser.chromium import ASYNC_SAFE
from tests.browser.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.browser.tabs import Tabs, tabs_of
from tests.fixtures.companies import Company, make_company
from tests.fixtures.users import make_colleague, make_domain
from tests.stack.console import console
from tests.stack.ports import free_port
from tests.stack.services import Services

pytestmark = pytest.mark.deep

_TIMEOUT_MS: Final = 60_000
_FONTS: Final = "https://fonts.googleapis.com/**"  # the provider's pages ask for them


@dataclass
class Site:
    """A company, its provider, and a console that knows both."""

    company: Company
    provider: OidcProvider
    tabs: Tabs
    email: str  # of a member

    def sign_in(self) -> Page:
        """Sign in through the provider's own pages, in a new browser."""
        page = self.open_provider()
        page.fill("input[name=login]", self.email)
        page.fill("input[name=password]", "any")
        page.click("button.login-submit")
        page.click("button[type=submit]")  # the provider asks for the user's consent
        page.wait_for_url(lambda url: not self.provider.is_at(url), timeout=_TIMEOUT_MS)
        return page

    def open_provider(self) -> Page:
        page = self.tabs.open()
        page.context.route(_FONTS, lambda route: route.fulfill(content_type="text/css", body=""))
        page.goto("/sign-in")
        page.fill("input[name=email]", self.email)
        page.click("button[name=single]")
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
def site(console_at: tuple[str, Tabs]) -> Site:
    url, tabs = console_at
    company = make_company("initech", {Role.OWNER: "olga"})
    make_domain(company, f"{company.slug}.example", verified=True)
    provider = OidcProvider(f"{url}/sign-in/provider/{company.tenant_id}")
    with override_settings(PRIVATE_TARGETS=[ip_network("127.0.0.0/8")]):
        new = OidcProviderConfig(provider.issuer, CLIENT_ID, CLIENT_SECRET)
        set_provider(actor=company.platform, new=new, now=timezone.now())
    return Site(company, provider, tabs, make_colleague(company).email)


def expect_refusal(site: Site, page: Page, text: str) -> None:
    expect(page.locator(".notice-error")).to_contain_text(text)
    site.tabs.errors.clear()  # the browser reports the status of the page


# A conforming provider returns the e-mail address only at its UserInfo endpoint. Other providers
# also put it in the ID token.
@pytest.mark.parametrize("conforms", [True, False], ids=["email-at-userinfo", "email-in-id-token"])
def test_a_member_signs_in(site: Site, *, conforms: bool) -> None:
    with site.provider.running(conforms=conforms):
        page = site.sign_in()

    expect(page.locator(".side-account")).to_contain_text(site.email)
    assert site.refusals() == []


def test_another_user_of_the_domain_gets_an_account_but_no_membership(site: Site) -> None:
    site.email = f"grace@{site.company.slug}.example"
    with site.provider.running():
        page = site.sign_in()

    expect(page.locator("h1")).to_contain_text("not a member of any tenant")
    assert User.objects.get(email=site.email).name == "Grace Hopper"
    site.tabs.errors.clear()  # the browser reports the page's status, 403


def test_sign_in_waits_for_a_slow_provider(site: Site) -> None:
    with site.provider.running(token_delay_s=3):
        page = site.sign_in()

    expect(page.locator(".side-account")).to_be_visible()


def test_sign_in_fails_if_the_provider_takes_too_long(site: Site) -> None:
    with site.provider.running(token_delay_s=60):
        page = site.sign_in()

        expect_refusal(site, page, "identity provider")
    assert site.refusals() == ["malformed"]  # also the reason for a missing response


def test_sign_in_fails_while_the_provider_is_down_and_works_later(site: Site) -> None:
    page = site.open_provider()

    expect_refusal(site, page, "identity provider")

    with site.provider.running():
        page = site.sign_in()
    expect(page.locator(".side-account")).to_be_visible()


def test_a_provider_may_rotate_its_signing_key(site: Site) -> None:
    for signing_key_id in ("first", "second"):
        with site.provider.running(signing_key_id=signing_key_id):
            page = site.sign_in()

        expect(page.locator(".side-account")).to_be_visible()


def test_a_provider_whose_clock_is_five_minutes_fast_is_refused(site: Site) -> None:
    with site.provider.running(clock_skew_s=300):
        page = site.sign_in()

    expect_refusal(site, page, "clock")
    assert site.refusals() == ["token_from_the_future"]


def test_a_provider_whose_clock_is_five_minutes_slow_is_accepted(site: Site) -> None:
    """Its tokens are valid for an hour, so they have not expired."""
    with site.provider.running(clock_skew_s=-300):
        page = site.sign_in()

    expect(page.locator(".side-account")).to_be_visible()

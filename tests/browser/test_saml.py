"""The return from a SAML provider in a real browser.

The provider's page posts across sites, and browsers withhold our session's cookie there. Only a
browser can show that the session is found in the end.
"""

import html
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest
from django.test import override_settings
from django.utils import timezone
from playwright.sync_api import Browser, expect

from tenants.base.permissions import Role
from tenants.identity.sso.metadata_fetch import fetch_metadata
from tenants.identity.sso.operations import SamlProviderConfig, set_saml_provider
from tests.browser.chromium import ASYNC_SAFE
from tests.browser.tabs import tabs_of
from tests.fakes.saml_provider import SamlProvider
from tests.fakes.server_thread import serving_in_thread
from tests.fixtures.companies import make_company
from tests.fixtures.users import make_domain
from tests.stack.console import console
from tests.stack.ports import free_port
from tests.stack.services import Services

_PAGE = """<!doctype html><body onload="document.forms[0].submit()"><form method="post" action="{}">
<input type="hidden" name="SAMLResponse" value="{}"></form>"""


@pytest.fixture
def idp() -> Iterator[SamlProvider]:
    """Run a provider at an IP address, which is another site than the console's name.

    The provider signs in the user with the address `signed_in_email`, which the test sets.
    """
    provider = SamlProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith("/saml"):
                self.send_response(204)  # for requests that a browser makes by itself
                self.end_headers()
                return
            assertion = provider.assertion_for(
                f"http://{self.headers['Host']}{self.path}", provider.signed_in_email
            )
            page = _PAGE.format(
                html.escape(str(assertion.acs_url)), provider.encode_response(assertion)
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.sso_url = f"http://127.0.0.1:{server.server_address[1]}/saml"
    with serving_in_thread(server):
        yield provider


def test_the_requesting_session_is_signed_in(
    browser: Browser, services: Services, idp: SamlProvider
) -> None:
    company, port = make_company("initech", {Role.OWNER: "olga"}), free_port()
    make_domain(company, f"{company.slug}.example", verified=True)
    provider_config = SamlProviderConfig(metadata=idp.metadata(), url=None, fetch=fetch_metadata)
    with override_settings(PRIVATE_TARGETS=[ip_network("127.0.0.0/8")]):
        set_saml_provider(actor=company.platform, config=provider_config, now=timezone.now())
    idp.signed_in_email = company.people[Role.OWNER].email
    url = f"http://localhost:{port}"

    with (
        console(services, CARET_CONSOLE_PORT=str(port), CARET_CONSOLE_URL=url, **ASYNC_SAFE),
        tabs_of(browser, url) as tabs,
    ):
        page = tabs.open()
        page.goto("/sign-in")
        page.fill("input[name=email]", idp.signed_in_email)
        page.click("button[name=single]")

        expect(page).to_have_url("/")

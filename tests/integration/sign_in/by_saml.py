"""Companies whose users sign in with a SAML provider, and browsers that carry its responses."""

import html
import re
from typing import Any

from django.test import Client
from django.utils import timezone

from tenants.base.permissions import Role
from tenants.identity.sso.metadata_fetch import fetch_metadata
from tenants.identity.sso.operations import SamlProviderConfig, set_saml_provider
from tests.fakes.saml_provider import AssertionData, SamlProvider
from tests.fixtures.companies import Company, make_company
from tests.fixtures.users import make_domain
from tests.integration.sign_in.by_provider import fresh_client


def make_saml_company(idp: SamlProvider) -> Company:
    made = make_company("initech", {Role.OWNER: "olga"})
    make_domain(made, f"{made.slug}.example", verified=True)
    configure_saml(made, idp.metadata())
    return made


def configure_saml(company: Company, metadata: str) -> None:
    described = SamlProviderConfig(metadata, None, fetch_metadata)
    set_saml_provider(actor=company.platform, config=described, now=timezone.now())


def request_assertion(client: Client, idp: SamlProvider, email: str, **more: str) -> AssertionData:
    """Return the provider's assertion for this user, after a sign-in request."""
    page = client.post("/sign-in", {"email": email, "single": "yes", **more})
    found = re.search(r'href="(https://login\.example\.com[^"]+)"', page.content.decode())
    assert found is not None, page.content
    return idp.assertion_for(html.unescape(found[1]), email)


def post(client: Client, company: Company, answer: str) -> Any:
    """Post the response from another site, without the session's cookie, and follow the
    redirect."""
    there = fresh_client()
    response = there.post(f"/sign-in/saml/{company.tenant_id}", {"SAMLResponse": answer})
    return client.get(response["Location"]) if response.status_code == 303 else response

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
    tenant = make_company("initech", {Role.OWNER: "olga"})
    make_domain(tenant, f"{tenant.slug}.example", verified=True)
    configure_saml(tenant, idp.metadata())
    return tenant


def configure_saml(company: Company, metadata: str) -> None:
    provider_config = SamlProviderConfig(metadata, None, fetch_metadata)
    set_saml_provider(actor=company.platform, config=provider_config, now=timezone.now())


def request_assertion(
    client: Client, idp: SamlProvider, email: str, **fields: str
) -> AssertionData:
    """Return the provider's assertion for this user, after a sign-in request."""
    page = client.post("/sign-in", {"email": email, "single": "yes", **fields})
    match = re.search(r'href="(https://login\.example\.com[^"]+)"', page.content.decode())
    assert match is not None, page.content
    return idp.assertion_for(html.unescape(match[1]), email)


def post_saml(client: Client, company: Company, saml_response: str) -> Any:
    """Post the provider's response, follow the redirect with the user's client, and return the
    console's last response.

    The post has no session cookie, because a browser sends none with a form of another site.
    """
    provider_client = fresh_client()
    form = {"SAMLResponse": saml_response}
    response = provider_client.post(f"/sign-in/saml/{company.tenant_id}", form)
    return client.get(response["Location"]) if response.status_code == 303 else response

"""Browsers that sign in with a tenant's identity provider."""

import html
import re
import secrets
from typing import Any

from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.identity.sso.operations import OidcProviderConfig, set_provider
from tenants.models import AuditEntry
from tests.fakes.console_client import Client
from tests.fixtures.companies import Company
from tests.integration.sign_in.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider


def configure_provider(company: Company, provider: OpenIdProvider) -> None:
    new = OidcProviderConfig(provider.issuer, CLIENT_ID, CLIENT_SECRET)
    set_provider(actor=company.platform, new=new, now=timezone.now())


def fresh_client() -> Client:
    """Return a client with its own IP address, because attempts are counted by IP address."""
    octets = [str(secrets.randbelow(250) + 1) for _ in range(3)]
    return Client(REMOTE_ADDR=f"10.{'.'.join(octets)}")


def provider_url(client: Client, email: str, **fields: str) -> str:
    """Choose single sign-on on the sign-in page, and return the link to the identity provider."""
    page = client.post("/sign-in", {"email": email, "single": "yes", **fields})
    assert page.status_code == 200, page.content
    match = re.search(r'href="(http://127\.0\.0\.1[^"]+)"', page.content.decode())
    assert match is not None
    return html.unescape(match[1])


def sign_in_through(client: Client, provider: OpenIdProvider, email: str, **claims: object) -> Any:
    """Sign in with these claims of the provider, and return the console's response."""
    redirect_url = provider.authorize(provider_url(client, email))
    provider.claims = {"email": email, **claims}
    return client.get(redirect_url)


def is_signed_in(client: Client) -> bool:
    return client.get("/").status_code != 302


def refusals_of(company: Company) -> list[str]:
    """Return the reasons of rejected sign-ins in the audit log, oldest first."""
    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(tenant_id=company.tenant_id, action="sign_in.refused")
        facts = entries.order_by("sequence").values_list("after", flat=True)
        return [str((after or {})["reason"]) for after in facts]

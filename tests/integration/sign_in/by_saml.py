"""Companies whose users sign in with a SAML provider, browsers that carry its responses, and forged
responses."""

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
    provider_config = SamlProviderConfig(metadata, url=None, fetch=fetch_metadata)
    set_saml_provider(actor=company.platform, config=provider_config, now=timezone.now())


def request_assertion(
    client: Client, idp: SamlProvider, email: str, **fields: str
) -> AssertionData:
    """Return the provider's assertion for this user, after a sign-in request."""
    page = client.post("/sign-in", {"email": email, "single": "yes", **fields})
    match = re.search(r'href="(https://login\.example\.com[^"]+)"', page.content.decode())
    assert match is not None, page.content
    return idp.assertion_for(html.unescape(match[1]), email)


def get_acs_path(company: Company) -> str:
    """Return the path of the tenant's assertion consumer service (ACS), which gets responses."""
    return f"/sign-in/saml/{company.tenant_id}"


def post_saml(client: Client, company: Company, saml_response: str) -> Any:
    """Post the provider's response, follow the redirect with the user's client, and return the
    console's last response.

    The post has no session cookie, because a browser sends none with a form of another site.
    """
    provider_client = fresh_client()
    form = {"SAMLResponse": saml_response}
    response = provider_client.post(get_acs_path(company), form)
    return client.get(response["Location"]) if response.status_code == 303 else response


def wrap_signatures(xml: str, email: str, victim: str) -> list[str]:
    """Return forged responses that name the victim.

    In each, the signed assertion is changed, moved, missing, or beside a forged one.
    """
    assertion_end, signature_end = "</saml:Assertion>", "</ds:Signature>"
    signed = xml[xml.index("<saml:Assertion") : xml.index(assertion_end) + len(assertion_end)]
    signature = signed[
        signed.index("<ds:Signature") : signed.index(signature_end) + len(signature_end)
    ]
    assertion_id = re.search(r' ID="([^"]+)"', signed)
    assert assertion_id is not None
    forged = signed.replace(signature, "").replace(email, victim)
    renamed = forged.replace(assertion_id[1], "_evil")  # forged, with another ID
    extensions = f"<samlp:Extensions>{signed}</samlp:Extensions>"
    # The signature, with the signed assertion inside.
    inside = signature.replace("</ds:Signature>", f"<ds:Object>{signed}</ds:Object></ds:Signature>")
    return [
        xml.replace(email, victim),  # the signed assertion is changed
        # The forged, unsigned assertion is added, with another ID or with the same one.
        xml.replace(signed, renamed + signed),
        xml.replace(signed, signed + renamed),
        xml.replace(signed, forged + signed),
        # The signed assertion is moved to the extensions.
        xml.replace(signed, renamed).replace("<samlp:Status>", f"{extensions}<samlp:Status>"),
        xml.replace(signed, forged).replace("<samlp:Status>", f"{extensions}<samlp:Status>"),
        # The forged assertion has the signature. In two cases, the signature contains the signed
        # assertion.
        xml.replace(signed, renamed.replace("<saml:Subject>", f"{signature}<saml:Subject>")),
        xml.replace(signed, renamed.replace("<saml:Subject>", f"{inside}<saml:Subject>")),
        xml.replace(signed, forged.replace("<saml:Subject>", f"{inside}<saml:Subject>")),
        # One assertion contains the other.
        xml.replace(signed, signed.replace("</saml:Subject>", f"</saml:Subject>{renamed}")),
        xml.replace(signed, renamed.replace("</saml:Assertion>", f"{signed}</saml:Assertion>")),
    ]

"""A user of an identity provider steps up with a new sign-in there.

Some pages require a step-up: a user who signed in too long ago must authenticate again.
"""

import html
import re
import time
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from tenants.base.permissions import Role
from tenants.identity.sso.metadata_fetch import fetch_metadata
from tenants.identity.sso.operations import SamlProviderConfig, remove_provider, set_saml_provider
from tenants.identity.sso.queries import get_rules
from tenants.models import User
from tests.fakes.console_client import Client
from tests.fakes.saml_provider import SamlProvider
from tests.fixtures.companies import Company, Person
from tests.fixtures.users import make_colleague
from tests.integration.sign_in.by_provider import fresh_client, is_signed_in
from tests.integration.sign_in.openid_provider import OpenIdProvider

TARGET = "/sign-in-settings/provider/remove"
REAUTHENTICATE = "/account/reauthenticate?next=%2Fsign-in-settings%2Fprovider%2Fremove"


class Provider(Protocol):
    """A provider for OpenID Connect or SAML, reached by a page's link."""

    def requests_new_sign_in(self, url: str) -> bool:
        """Return whether the link asks the provider to sign the user in again."""

    def complete_sign_in(self, client: Client, url: str, email: str, signed_in_s_ago: int) -> Any:
        """Let the provider sign the user in, and return the response of our page that follows."""


@dataclass
class ByOpenId:
    provider: OpenIdProvider

    def requests_new_sign_in(self, url: str) -> bool:
        query = parse_qs(urlsplit(url).query)
        return (query.get("prompt"), query.get("max_age")) == (["login"], ["0"])

    def complete_sign_in(self, client: Client, url: str, email: str, signed_in_s_ago: int) -> Any:
        redirect_url = self.provider.authorize(url)
        self.provider.claims = {"email": email, "auth_time": int(time.time()) - signed_in_s_ago}
        return client.get(redirect_url)


@dataclass
class BySaml:
    provider: SamlProvider
    company: Company

    def requests_new_sign_in(self, url: str) -> bool:
        return self.provider.assertion_for(url, "").requests_new_sign_in

    def complete_sign_in(self, client: Client, url: str, email: str, signed_in_s_ago: int) -> Any:
        assertion = self.provider.assertion_for(url, email)
        saml_response = self.provider.encode_response(assertion, signed_in_s_ago=signed_in_s_ago)
        address = f"/sign-in/saml/{self.company.tenant_id}"
        return client.get(fresh_client().post(address, {"SAMLResponse": saml_response})["Location"])


@pytest.fixture(params=["openid", "saml"])
def sign_in_provider(
    request: pytest.FixtureRequest, company: Company, provider: OpenIdProvider
) -> Provider:
    if request.param == "openid":
        return ByOpenId(provider)
    idp = SamlProvider()
    provider_config = SamlProviderConfig(metadata=idp.metadata(), url=None, fetch=fetch_metadata)
    set_saml_provider(actor=company.platform, config=provider_config, now=timezone.now())
    return BySaml(idp, company)


@pytest.fixture
def client(sign_in_provider: Provider, owner: Person) -> Client:
    """Return the owner's browser. Its sign-in at the provider was four hours ago."""
    client = fresh_client()
    page = client.post("/sign-in", {"email": owner.email, "single": "yes"})
    sign_in_provider.complete_sign_in(
        client, provider_link(page), owner.email, signed_in_s_ago=4 * 3600
    )
    return client


def provider_link(page: Any) -> str:
    """Return the link to which the page redirects the browser."""
    match = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    assert match is not None, page.content
    return html.unescape(match[1])


def reauthenticate(client: Client, target: str = TARGET) -> str:
    """Begin a step-up that leads to the target, and return the link to the provider."""
    return provider_link(client.post("/account/reauthenticate", {"next": target}))


def needs_step_up(client: Client) -> bool:
    return client.get(TARGET).status_code == 302


def test_an_old_provider_sign_in_needs_a_step_up(client: Client) -> None:
    assert client.get(TARGET)["Location"] == REAUTHENTICATE


def test_a_step_up_requests_a_new_sign_in_and_returns_to_the_page(
    client: Client, sign_in_provider: Provider, owner: Person
) -> None:
    url = reauthenticate(client)

    response = sign_in_provider.complete_sign_in(client, url, owner.email, signed_in_s_ago=0)

    assert sign_in_provider.requests_new_sign_in(url)
    assert response["Location"] == TARGET
    assert not needs_step_up(client)


def test_a_first_sign_in_does_not_request_a_new_provider_sign_in(
    sign_in_provider: Provider, owner: Person
) -> None:
    page = fresh_client().post("/sign-in", {"email": owner.email, "single": "yes"})

    assert not sign_in_provider.requests_new_sign_in(provider_link(page))


def test_a_reused_provider_sign_in_is_refused_with_a_message(
    client: Client, sign_in_provider: Provider, owner: Person
) -> None:
    # A step-up allows 60 s of clock drift.
    response = sign_in_provider.complete_sign_in(
        client, reauthenticate(client), owner.email, signed_in_s_ago=120
    )
    page = client.get(response["Location"]).content.decode()

    assert response["Location"] == REAUTHENTICATE
    assert "reused an earlier sign-in" in page
    assert needs_step_up(client)


def test_a_step_up_by_another_user_is_refused(
    client: Client, sign_in_provider: Provider, company: Company
) -> None:
    colleague = make_colleague(company, Role.OWNER)

    response = sign_in_provider.complete_sign_in(
        client, reauthenticate(client), colleague.email, signed_in_s_ago=0
    )
    page = client.get(response["Location"]).content.decode()

    assert response["Location"] == REAUTHENTICATE
    assert "as a different user" in page
    assert needs_step_up(client)


def test_a_step_up_by_a_user_without_an_account_creates_none(
    client: Client, sign_in_provider: Provider, owner: Person
) -> None:
    new_email = f"new.{owner.email}"  # of the tenant's verified domain

    response = sign_in_provider.complete_sign_in(
        client, reauthenticate(client), new_email, signed_in_s_ago=0
    )

    assert response["Location"] == REAUTHENTICATE
    assert not User.objects.filter(email=new_email).exists()


def test_a_step_up_in_spite_of_another_spelling_of_the_address_succeeds(
    client: Client, sign_in_provider: Provider, owner: Person
) -> None:
    response = sign_in_provider.complete_sign_in(
        client, reauthenticate(client), owner.email.upper(), signed_in_s_ago=0
    )

    assert response["Location"] == TARGET
    assert not needs_step_up(client)


def test_a_first_sign_in_counts_as_a_step_up_for_five_minutes(
    sign_in_provider: Provider, owner: Person
) -> None:
    is_step_up_needed = {}
    for ago_s in (60, 360):
        client = fresh_client()
        page = client.post("/sign-in", {"email": owner.email, "single": "yes"})
        sign_in_provider.complete_sign_in(
            client, provider_link(page), owner.email, signed_in_s_ago=ago_s
        )
        is_step_up_needed[ago_s] = needs_step_up(client)

    assert is_step_up_needed == {60: False, 360: True}


def test_a_sign_in_time_in_the_future_counts_from_now(
    sign_in_provider: Provider, owner: Person
) -> None:
    client = fresh_client()
    page = client.post("/sign-in", {"email": owner.email, "single": "yes"})

    sign_in_provider.complete_sign_in(
        client, provider_link(page), owner.email, signed_in_s_ago=-86_400
    )

    assert client.session["signed-in-by-provider-at"] <= time.time()


def test_a_pending_form_survives_a_step_up_at_the_provider(
    client: Client, sign_in_provider: Provider, company: Company, owner: Person
) -> None:
    redirect = client.post("/sign-in-settings/second-factor/required")
    target = parse_qs(urlsplit(redirect["Location"]).query)["next"][0]

    response = sign_in_provider.complete_sign_in(
        client, reauthenticate(client, target), owner.email, signed_in_s_ago=0
    )
    page = client.get(response["Location"]).content.decode()
    client.post("/sign-in-settings/second-factor/required")

    assert response["Location"] == target
    assert 'action="/sign-in-settings/second-factor/required"' in page
    assert get_rules(actor=company.platform).is_mfa_required


@pytest.mark.parametrize("auth_time", [None, True, "now", 1e30, []])
def test_a_token_without_a_valid_auth_time_is_no_step_up(
    company: Company, owner: Person, provider: OpenIdProvider, auth_time: object
) -> None:
    client = fresh_client()
    page = client.post("/sign-in", {"email": owner.email, "single": "yes"})
    ByOpenId(provider).complete_sign_in(client, provider_link(page), owner.email, signed_in_s_ago=0)
    redirect_url = provider.authorize(reauthenticate(client))
    provider.claims = {"email": owner.email, "auth_time": auth_time}

    assert client.get(redirect_url)["Location"] == REAUTHENTICATE


def test_a_step_up_after_the_providers_removal_is_a_new_sign_in(
    client: Client, sign_in_provider: Provider, company: Company, owner: Person
) -> None:
    session_key = client.session.session_key
    remove_provider(actor=company.platform, now=timezone.now(), exempt_session_key=session_key)

    response = client.post("/account/reauthenticate", {"next": TARGET})

    assert response["Location"] == "/sign-in?next=%2Fsign-in-settings%2Fprovider%2Fremove"


def clear_request_details(client: Client) -> None:
    """Make the pending request look like one of the previous release.

    The session then does not say whether the request asked for a new sign-in.
    """
    session = client.session
    # OpenID Connect: django-allauth stores each pending request as a list that begins with a state.
    for state, *_ in session.get("socialaccount_states", {}).values():
        state.pop("data")
    session.get("saml-request", {}).pop("force_reauthentication", None)
    session.save()


def test_a_sign_in_pending_during_an_upgrade_is_restarted(
    sign_in_provider: Provider, owner: Person
) -> None:
    client = fresh_client()
    page = client.post("/sign-in", {"email": owner.email, "single": "yes"})
    clear_request_details(client)

    restarted = sign_in_provider.complete_sign_in(
        client, provider_link(page), owner.email, signed_in_s_ago=0
    )
    was_signed_in = is_signed_in(client)
    sign_in_provider.complete_sign_in(client, restarted["Location"], owner.email, signed_in_s_ago=0)

    assert restarted.status_code == 302
    assert not was_signed_in
    assert not sign_in_provider.requests_new_sign_in(restarted["Location"])
    assert client.get("/").status_code == 200


def test_a_step_up_pending_during_an_upgrade_is_restarted(
    client: Client, sign_in_provider: Provider, owner: Person
) -> None:
    url = reauthenticate(client)
    clear_request_details(client)

    restarted = sign_in_provider.complete_sign_in(
        client, url, owner.email, signed_in_s_ago=4 * 3600
    )

    assert sign_in_provider.requests_new_sign_in(restarted["Location"])
    assert needs_step_up(client)

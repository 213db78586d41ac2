"""Sign-ins while a SAML provider is down or slow, or has a new certificate or a wrong clock."""

import time
from dataclasses import replace
from typing import Final

import pytest
from django.utils import timezone

from tenants.base.errors import InvalidValue
from tenants.base.permissions import Role
from tenants.compliance.attention import AlertKind, list_alerts
from tenants.identity.sso.metadata_fetch import fetch_metadata
from tenants.identity.sso.operations import SamlProviderConfig, set_saml_provider
from tenants.identity.sso.queries import get_rules
from tests.fakes.console_client import Client
from tests.fakes.saml_provider import SamlProvider
from tests.fixtures.companies import Company, Person
from tests.fixtures.users import make_colleague
from tests.integration.sign_in.by_provider import fresh_client, is_signed_in, refusals_of
from tests.integration.sign_in.by_saml import (
    configure_saml,
    make_saml_company,
    post_saml,
    request_assertion,
)
from tests.integration.sign_in.openid_provider import OpenIdProvider, new_key
from tests.integration.sign_in.test_hostile_provider import OK, send_dripping_body
from tests.integration.sign_in.test_signing_in_again import provider_link

_METADATA_PATH: Final = "/metadata"
_UNREACHABLE_URL: Final = "http://127.0.0.1:9"  # no server listens on this port


@pytest.fixture
def idp() -> SamlProvider:
    return SamlProvider()


@pytest.fixture
def company(idp: SamlProvider) -> Company:
    return make_saml_company(idp)


@pytest.fixture
def owner(company: Company) -> Person:
    return company.people[Role.OWNER]


def sign_in(client: Client, company: Company, idp: SamlProvider, email: str) -> str:
    """Sign in at the provider, and return the page that follows."""
    page = post_saml(client, company, idp.encode_response(request_assertion(client, idp, email)))
    return str(page.content.decode())


def list_refusal_counts(person: Person) -> list[int]:
    """Return the number of refused sign-ins in each alert about an unknown certificate."""
    alerts = list_alerts(actor=person.actor, now=timezone.now())
    return [alert.num for alert in alerts if alert.kind is AlertKind.CERTIFICATE_UNKNOWN]


def test_a_new_certificate_is_refused_until_an_owner_updates_the_metadata(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    rotated = replace(idp, key=new_key())
    page = sign_in(fresh_client(), company, rotated, owner.email)
    assert "signed with a certificate that Caret does not know" in page
    assert refusals_of(company) == ["invalid_signature"]

    configure_saml(company, rotated.metadata())

    client = fresh_client()
    sign_in(client, company, rotated, owner.email)
    assert is_signed_in(client)


def test_owners_learn_of_a_new_certificate_until_they_update_the_metadata(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    neighbour = make_saml_company(idp).people[Role.OWNER]
    rotated = replace(idp, key=new_key())
    assert list_refusal_counts(owner) == []
    for _ in range(2):
        sign_in(fresh_client(), company, rotated, owner.email)
    assert list_refusal_counts(owner) == [2]
    assert list_refusal_counts(make_colleague(company, Role.BILLING)) == []
    assert list_refusal_counts(neighbour) == []

    configure_saml(company, rotated.metadata())

    assert list_refusal_counts(owner) == []


# The provider's assertions are valid from 60 s before to 300 s after its own time. python3-saml
# allows 300 s of clock drift before and after, but none at the end of the subject's confirmation.
@pytest.mark.parametrize("skew_s", [300, -240])
def test_a_clock_that_is_minutes_off_is_accepted(
    company: Company, owner: Person, idp: SamlProvider, skew_s: int
) -> None:
    client = fresh_client()
    idp.clock_skew_s = skew_s

    sign_in(client, company, idp, owner.email)

    assert is_signed_in(client)


@pytest.mark.parametrize(
    ("skew_s", "reason", "text"),
    [
        (420, "assertion_too_early", "The clock of your identity provider differs from ours."),
        (-330, "confirmation_expired", "The sign-in expired before it reached us."),
        (-700, "assertion_expired", "The sign-in expired before it reached us."),
    ],
)
def test_a_clock_that_is_further_off_is_explained(
    company: Company, owner: Person, idp: SamlProvider, skew_s: int, reason: str, text: str
) -> None:
    client = fresh_client()
    idp.clock_skew_s = skew_s

    page = sign_in(client, company, idp, owner.email)

    assert text in page
    assert refusals_of(company) == [reason]
    assert not is_signed_in(client)


def test_a_step_up_at_a_provider_with_a_slow_clock_is_explained(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    client = fresh_client()
    idp.clock_skew_s = -120  # accepted for a sign-in; for a step-up, at most 60 s slow is accepted
    sign_in(client, company, idp, owner.email)
    page = client.post("/account/reauthenticate", {"next": "/sign-in-settings"})
    assertion = idp.assertion_for(provider_link(page), owner.email)

    response = post_saml(client, company, idp.encode_response(assertion))

    assert "identity provider is slow" in client.get(response["Location"]).content.decode()
    assert refusals_of(company) == ["provider_clock_slow"]


def test_a_user_who_takes_too_long_is_told_to_try_again(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    client = fresh_client()
    saml_response = idp.encode_response(request_assertion(client, idp, owner.email))
    session = client.session
    over_ten_minutes_ago = int(time.time()) - 601  # seconds
    session["saml-request"] = {**session["saml-request"], "sent_at": over_ten_minutes_ago}
    session.save()

    page = post_saml(client, company, saml_response)

    assert "You took longer than ten minutes to sign in" in page.content.decode()
    assert refusals_of(company) == ["too_late"]


def configure_by_url(company: Company, url: str) -> None:
    config = SamlProviderConfig(metadata=None, url=url, fetch=fetch_metadata)
    set_saml_provider(actor=company.platform, config=config, now=timezone.now())


def test_metadata_are_fetched_from_their_url(
    company: Company, provider: OpenIdProvider, idp: SamlProvider
) -> None:
    # The OpenID provider serves here only as an HTTP server for the SAML metadata.
    fetched = replace(idp, entity_id="https://login.example.com/another")
    provider.raw = {_METADATA_PATH: lambda: [OK, fetched.metadata().encode()]}

    configure_by_url(company, provider.issuer + _METADATA_PATH)

    rules = get_rules(actor=company.platform)
    assert rules.provider is not None
    assert rules.provider.issuer == fetched.entity_id


@pytest.mark.parametrize("fault", ["down", "slow", "missing", "moved", "no metadata"])
def test_metadata_that_cannot_be_fetched_change_nothing(
    company: Company, provider: OpenIdProvider, idp: SamlProvider, fault: str
) -> None:
    # The OpenID provider serves here only as an HTTP server. The fault is the path of the metadata.
    provider.raw = {
        "/slow": send_dripping_body,
        "/missing": lambda: [b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"],
        "/moved": lambda: [b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"],
        "/no%20metadata": lambda: [OK, b"<html><body>Sign in</body></html>"],
    }
    expected = {
        "down": ("metadata_url", "The endpoint did not respond"),
        "slow": ("metadata_url", "The request timed out."),
        "missing": ("metadata_url", "The provider responded with status 404."),
        "moved": ("metadata_url", "The provider responded with status 302."),
        "no metadata": ("metadata", "must describe exactly one identity provider"),
    }
    base = _UNREACHABLE_URL if fault == "down" else provider.issuer

    with pytest.raises(InvalidValue) as raised:
        configure_by_url(company, f"{base}/{fault.replace(' ', '%20')}")

    field, text = expected[fault]
    assert raised.value.field == field
    assert text in raised.value.message
    rules = get_rules(actor=company.platform)
    assert rules.provider is not None
    assert rules.provider.issuer == idp.entity_id

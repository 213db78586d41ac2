"""A user of an identity provider steps up with a new sign-in there."""

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
from tests.fakes.console_client import Client
from tests.fakes.saml_provider import SamlProvider
from tests.fixtures.companies import Company, Person
from tests.fixtures.users import make_colleague
from tests.integration.sign_in.by_provider import fresh_client
from tests.integration.sign_in.openid_provider import OpenIdProvider

GRAVE = "/sign-in-settings/provider/remove"
AGAIN = "/account/reauthenticate?next=%2Fsign-in-settings%2Fprovider%2Fremove"


class Provider(Protocol):
    """A provider for OpenID Connect or SAML, reached by a page's link."""

    def is_asked_again(self, url: str) -> bool: ...

    def answer(self, client: Client, url: str, email: str, signed_in_s_ago: int) -> Any:
        """Return our page to which the browser returns."""


@dataclass
class ByOpenId:
    provider: OpenIdProvider

    def is_asked_again(self, url: str) -> bool:
        asked = parse_qs(urlsplit(url).query)
        return (asked.get("prompt"), asked.get("max_age")) == (["login"], ["0"])

    def answer(self, client: Client, url: str, email: str, signed_in_s_ago: int) -> Any:
        back = self.provider.authorize(url)
        self.provider.claims = {"email": email, "auth_time": int(time.time()) - signed_in_s_ago}
        return client.get(back)


@dataclass
class BySaml:
    provider: SamlProvider
    company: Company

    def is_asked_again(self, url: str) -> bool:
        return self.provider.asked(url, "").is_asked_again

    def answer(self, client: Client, url: str, email: str, signed_in_s_ago: int) -> Any:
        said = self.provider.asked(url, email)
        answer = self.provider.answer(said, signed_in_s_ago=signed_in_s_ago)
        address = f"/sign-in/saml/{self.company.tenant_id}"
        return client.get(fresh_client().post(address, {"SAMLResponse": answer})["Location"])


@pytest.fixture(params=["openid", "saml"])
def by(request: pytest.FixtureRequest, company: Company, provider: OpenIdProvider) -> Provider:
    if request.param == "openid":
        return ByOpenId(provider)
    idp = SamlProvider()
    described = SamlProviderConfig(idp.metadata(), None, fetch_metadata)
    set_saml_provider(actor=company.platform, described=described, now=timezone.now())
    return BySaml(idp, company)


@pytest.fixture
def client(by: Provider, owner: Person) -> Client:
    """Return the owner's browser, signed in at the provider this morning."""
    client = fresh_client()
    page = client.post("/sign-in", {"email": owner.email, "single": "yes"})
    by.answer(client, way_out(page), owner.email, signed_in_s_ago=4 * 3600)
    return client


def way_out(page: Any) -> str:
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    assert found is not None, page.content
    return html.unescape(found[1])


def sent_again(client: Client, target: str = GRAVE) -> str:
    return way_out(client.post("/account/reauthenticate", {"next": target}))


def is_asked(client: Client) -> bool:
    return client.get(GRAVE).status_code == 302


def test_a_sign_in_of_this_morning_is_not_enough(client: Client) -> None:
    assert client.get(GRAVE)["Location"] == AGAIN


def test_the_provider_is_told_to_ask_again_and_then_he_goes_on(
    client: Client, by: Provider, owner: Person
) -> None:
    url = sent_again(client)

    response = by.answer(client, url, owner.email, signed_in_s_ago=0)

    assert by.is_asked_again(url)
    assert response["Location"] == GRAVE
    assert not is_asked(client)


def test_a_first_sign_in_takes_whoever_is_signed_in_there(by: Provider, owner: Person) -> None:
    page = fresh_client().post("/sign-in", {"email": owner.email, "single": "yes"})

    assert not by.is_asked_again(way_out(page))


def test_an_earlier_sign_in_is_refused_and_it_is_said(
    client: Client, by: Provider, owner: Person
) -> None:
    response = by.answer(client, sent_again(client), owner.email, signed_in_s_ago=120)
    page = client.get(response["Location"]).content.decode()

    assert response["Location"] == AGAIN
    assert "reused an earlier sign-in" in page
    assert is_asked(client)


def test_somebody_elses_sign_in_is_refused_and_the_session_stays_his(
    client: Client, by: Provider, company: Company
) -> None:
    other = make_colleague(company, Role.OWNER)

    response = by.answer(client, sent_again(client), other.email, signed_in_s_ago=0)
    page = client.get(response["Location"]).content.decode()

    assert response["Location"] == AGAIN
    assert "as a different user" in page
    assert is_asked(client)


def test_signing_in_for_the_first_time_counts_for_five_minutes(by: Provider, owner: Person) -> None:
    asked = {}
    for ago_s in (60, 360):
        client = fresh_client()
        page = client.post("/sign-in", {"email": owner.email, "single": "yes"})
        by.answer(client, way_out(page), owner.email, signed_in_s_ago=ago_s)
        asked[ago_s] = is_asked(client)

    assert asked == {60: False, 360: True}


def test_a_sign_in_of_the_future_counts_from_now(by: Provider, owner: Person) -> None:
    client = fresh_client()
    page = client.post("/sign-in", {"email": owner.email, "single": "yes"})

    by.answer(client, way_out(page), owner.email, signed_in_s_ago=-86_400)

    assert client.session["signed-in-by-provider-at"] <= time.time()


def test_what_he_sent_is_carried_across_the_provider(
    client: Client, by: Provider, company: Company, owner: Person
) -> None:
    sent = client.post("/sign-in-settings/second-factor/required")
    target = parse_qs(urlsplit(sent["Location"]).query)["next"][0]

    response = by.answer(client, sent_again(client, target), owner.email, signed_in_s_ago=0)
    page = client.get(response["Location"]).content.decode()
    client.post("/sign-in-settings/second-factor/required")

    assert response["Location"] == target
    assert 'action="/sign-in-settings/second-factor/required"' in page
    assert get_rules(actor=company.platform).is_mfa_required


@pytest.mark.parametrize("said", [None, True, "now", 1e30, []])
def test_a_token_that_does_not_say_when_confirms_nothing(
    company: Company, owner: Person, provider: OpenIdProvider, said: object
) -> None:
    client = fresh_client()
    page = client.post("/sign-in", {"email": owner.email, "single": "yes"})
    ByOpenId(provider).answer(client, way_out(page), owner.email, signed_in_s_ago=0)
    back = provider.authorize(sent_again(client))
    provider.claims = {"email": owner.email, "auth_time": said}

    assert client.get(back)["Location"] == AGAIN


def test_without_the_provider_he_signs_in_anew(
    client: Client, by: Provider, company: Company, owner: Person
) -> None:
    session = client.session.session_key
    remove_provider(actor=company.platform, now=timezone.now(), spared_session=session)

    response = client.post("/account/reauthenticate", {"next": GRAVE})

    assert response["Location"] == "/sign-in?next=%2Fsign-in-settings%2Fprovider%2Fremove"


def forget_what_was_asked(client: Client) -> None:
    """Make the pending request look like one of the previous release.

    It then contains neither its time nor whether a new sign-in was requested.
    """
    session = client.session
    for state, *_ in session.get("socialaccount_states", {}).values():
        state.pop("data")
    session.get("saml-question", {}).pop("again", None)
    session.save()


def test_a_question_of_before_an_upgrade_is_asked_anew(by: Provider, owner: Person) -> None:
    client = fresh_client()
    page = client.post("/sign-in", {"email": owner.email, "single": "yes"})
    forget_what_was_asked(client)

    restarted = by.answer(client, way_out(page), owner.email, signed_in_s_ago=0)
    before = client.get("/").status_code
    by.answer(client, restarted["Location"], owner.email, signed_in_s_ago=0)

    assert restarted.status_code == before == 302
    assert not by.is_asked_again(restarted["Location"])
    assert client.get("/").status_code == 200


def test_who_was_to_confirm_is_asked_again_after_an_upgrade(
    client: Client, by: Provider, owner: Person
) -> None:
    url = sent_again(client)
    forget_what_was_asked(client)

    restarted = by.answer(client, url, owner.email, signed_in_s_ago=4 * 3600)

    assert by.is_asked_again(restarted["Location"])
    assert is_asked(client)

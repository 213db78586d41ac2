"""Signing in with a tenant's SAML provider, and forged, stolen and misdirected responses."""

import re
import secrets
from typing import Any

import pytest
from django.test import Client
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Saml

from tenants.base import redis_connection
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Role
from tests.fakes.saml_provider import SamlProvider, encode
from tests.fixtures.companies import PASSWORD, Cast, Company, Person
from tests.integration.sign_in.by_provider import fresh_client, is_signed_in, refusals_of
from tests.integration.sign_in.by_saml import (
    configure_saml,
    get_acs_path,
    make_saml_company,
    post_saml,
    request_assertion,
    wrap_signatures,
)


@pytest.fixture(scope="module")
def idp() -> SamlProvider:
    return SamlProvider()


@pytest.fixture
def company(idp: SamlProvider) -> Company:
    return make_saml_company(idp)


@pytest.fixture
def owner(company: Company) -> Person:
    return company.people[Role.OWNER]


def test_a_member_signs_in_through_the_provider(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    client = fresh_client()
    saml_response = idp.encode_response(request_assertion(client, idp, owner.email))

    response = post_saml(client, company, saml_response)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.get("/api/v1/tenant").json()["slug"] == company.slug


def test_a_signed_response_is_accepted(company: Company, owner: Person, idp: SamlProvider) -> None:
    client = fresh_client()
    assertion = request_assertion(client, idp, owner.email)

    response = post_saml(client, company, idp.encode_response(assertion, signs_response=True))

    assert response.status_code == 302


def test_signing_in_redirects_to_the_requested_page(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    client = fresh_client()
    assertion = request_assertion(client, idp, owner.email, next="/keys/new")

    response = post_saml(client, company, idp.encode_response(assertion))

    assert response["Location"] == "/keys/new"


def test_a_password_is_refused_if_there_is_a_provider(company: Company, owner: Person) -> None:
    client = fresh_client()

    response = client.post("/sign-in", {"email": owner.email, "password": PASSWORD})

    assert b"Continue to your identity provider" in response.content
    assert not is_signed_in(client)


def test_a_new_user_gets_an_account_without_membership(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    client = fresh_client()
    email = f"{secrets.token_hex(4)}@{company.slug}.example"

    post_saml(client, company, idp.encode_response(request_assertion(client, idp, email)))

    assert client.get("/api/v1/tenant").json()["code"] == "no_active_tenant"


def list_tickets(company: Company) -> list[bytes]:
    """Return the Redis keys of the tenant's tickets. A ticket stands for a verified response."""
    return list(
        redis_connection.connect_to_redis().scan_iter(f"caret:saml:ticket:{company.tenant_id}:*")
    )


def test_a_large_response_does_not_fill_redis(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    assertion = request_assertion(fresh_client(), idp, owner.email)
    saml_response = idp.encode_response(assertion, email=f"{'a' * 40_000}@{company.slug}.example")

    response = fresh_client().post(get_acs_path(company), {"SAMLResponse": saml_response})

    assert response.status_code == 403
    assert list_tickets(company) == []


def set_unrepresentable_time(xml: str) -> str:
    """Set a time that is in the year 10000 in UTC, which Python cannot represent."""
    return re.sub(r'NotBefore="[^"]+"', 'NotBefore="9999-12-31T23:59:59-14:00"', xml)


def test_repeated_attributes_are_accepted(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    client = fresh_client()
    assertion = request_assertion(client, idp, owner.email)
    saml_response = idp.encode_response(assertion, attributes=(("Role", "a"), ("Role", "b")))

    response = post_saml(client, company, saml_response)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert refusals_of(company) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sp_name_qualifier": "https://x.example/sp"}, "sp_name_qualifier_name_mismatch"),
        ({"has_name_id": False, "has_email_attribute": False}, "no_email"),
        ({"is_signed": False}, "assertion_not_signed"),
        ({"lasts_s": -301.0}, "assertion_expired"),  # python3-saml allows 300 s of clock drift
        ({"lasts_s": -1.0}, "confirmation_expired"),
        ({"issuer": "https://evil.example"}, "wrong_issuer"),
        ({"audience": "https://elsewhere.example"}, "wrong_audience"),
        ({"edit": set_unrepresentable_time}, "malformed"),
        ({"email": "somebody@elsewhere.example"}, "address_not_allowed"),
        ({"request_id": "_another", "confirmed_request_id": "_another"}, "unsolicited"),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_a_refused_response_is_audited_with_its_reason(
    company: Company, owner: Person, idp: SamlProvider, changes: dict[str, Any], reason: str
) -> None:
    client = fresh_client()
    assertion = request_assertion(client, idp, owner.email)

    response = post_saml(client, company, idp.encode_response(assertion, **changes))

    assert response.status_code == 403
    assert not is_signed_in(client)
    assert refusals_of(company) == [reason]


def test_the_last_page_of_an_unknown_tenants_sign_in_is_not_found() -> None:
    unknown_tenant_id = "00000000-0000-0000-0000-000000000000"

    assert Client().get(f"/sign-in/saml/{unknown_tenant_id}/done?ticket=x").status_code == 404


@pytest.mark.parametrize(
    "changes",
    [
        {"is_signed": False},
        {"is_signed": False, "signs_response": True},
        {"algorithm": Saml.RSA_SHA1},
        {"lasts_s": -301.0},
        {"audience": "https://elsewhere.example"},
        {"audience": None},
        {"issuer": "https://evil.example"},
        {"acs_url": "https://elsewhere.example/acs"},
        {"acs_url": None},
        {"recipient": "https://elsewhere.example/acs"},
        {"recipient": None},
        {"request_id": "_another"},
        {"request_id": None},
        {"confirmed_request_id": "_another"},
        {"confirmed_request_id": None},
        {"request_id": None, "confirmed_request_id": None},
        {"request_id": "_another", "confirmed_request_id": "_another"},
    ],
    ids=str,
)
def test_an_invalid_response_is_refused(
    company: Company, owner: Person, idp: SamlProvider, changes: dict[str, Any]
) -> None:
    client = fresh_client()
    assertion = request_assertion(client, idp, owner.email)

    response = post_saml(client, company, idp.encode_response(assertion, **changes))

    assert response.status_code == 403
    assert not is_signed_in(client)


def test_a_response_signed_with_another_key_is_refused(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    """The response contains the certificate of the other key, which is ignored."""
    client, thief = fresh_client(), SamlProvider()
    saml_response = thief.encode_response(request_assertion(client, idp, owner.email))

    response = post_saml(client, company, saml_response)

    assert response.status_code == 403
    assert not is_signed_in(client)


def test_signature_wrapping_is_refused(company: Company, owner: Person, idp: SamlProvider) -> None:
    """Signature wrapping: a user of the provider tries to sign in as another user."""
    mallory = f"mallory@{company.slug}.example"
    num_wrapped = 11  # the number of responses that wrap_signatures returns
    for number in range(num_wrapped):
        client = fresh_client()
        xml = idp.build_response(request_assertion(client, idp, mallory))
        wrapped_responses = wrap_signatures(xml, mallory, owner.email)
        assert len(wrapped_responses) == num_wrapped

        response = post_saml(client, company, encode(wrapped_responses[number]))

        assert response.status_code == 403, number
        assert not is_signed_in(client), number


def test_a_comment_in_an_address_does_not_truncate_it(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    client = fresh_client()
    assertion = request_assertion(client, idp, owner.email)
    saml_response = idp.encode_response(assertion, email=f"{owner.email}<!-- -->.evil.example")

    response = post_saml(client, company, saml_response)

    assert response.status_code == 403
    assert not is_signed_in(client)


def test_a_response_works_once(company: Company, owner: Person, idp: SamlProvider) -> None:
    client, other_client = fresh_client(), fresh_client()
    saml_response = idp.encode_response(request_assertion(client, idp, owner.email))
    first_use = post_saml(client, company, saml_response)
    client.post("/sign-out")

    responses = [post_saml(browser, company, saml_response) for browser in (client, other_client)]

    assert first_use.status_code == 302
    assert [response.status_code for response in responses] == [403, 403]
    assert not is_signed_in(client)
    assert not is_signed_in(other_client)


def test_a_response_gives_one_ticket(company: Company, owner: Person, idp: SamlProvider) -> None:
    client = fresh_client()
    saml_response = idp.encode_response(request_assertion(client, idp, owner.email))
    acs_path, form = get_acs_path(company), {"SAMLResponse": saml_response}

    statuses = [client.post(acs_path, form).status_code for _ in range(2)]

    assert statuses == [303, 403]


def test_a_ticket_is_refused_and_used_up_in_a_browser_that_did_not_begin_the_sign_in(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    """Login CSRF: an attacker makes the victim's browser finish the attacker's own sign-in."""
    client, victim = fresh_client(), fresh_client()
    saml_response = idp.encode_response(request_assertion(client, idp, owner.email))
    request_assertion(victim, idp, owner.email)
    form = {"SAMLResponse": saml_response}
    # A browser posts the form of another site without a session cookie, as a fresh client does.
    url_with_ticket = fresh_client().post(get_acs_path(company), form)["Location"]

    assert victim.get(url_with_ticket).status_code == 403
    assert client.get(url_with_ticket).status_code == 403, "the ticket was not used up"
    assert not is_signed_in(victim)


def test_an_unsolicited_response_is_refused(
    company: Company, owner: Person, idp: SamlProvider
) -> None:
    assertion = request_assertion(fresh_client(), idp, owner.email)
    stranger = fresh_client()

    response = post_saml(stranger, company, idp.encode_response(assertion))

    assert response.status_code == 403
    assert not is_signed_in(stranger)


@pytest.fixture(params=["own provider", "same provider"])
def other_idp(request: pytest.FixtureRequest, idp: SamlProvider) -> SamlProvider:
    """The provider of another tenant: its own, or the same one as that of `company`."""
    return idp if request.param == "same provider" else SamlProvider()


def test_a_response_of_another_tenants_provider_is_refused(
    company: Company, owner: Person, idp: SamlProvider, other_idp: SamlProvider
) -> None:
    """The response names no audience, so its audience does not show for which tenant it is."""
    make_saml_company(other_idp)
    client = fresh_client()
    assertion = request_assertion(client, idp, owner.email)

    response = post_saml(client, company, other_idp.encode_response(assertion, audience=None))

    assert response.status_code == 403
    assert not is_signed_in(client)


def test_a_response_that_is_sent_to_another_tenant_is_refused(
    company: Company, owner: Person, idp: SamlProvider, other_idp: SamlProvider
) -> None:
    other_company = make_saml_company(other_idp)
    client = fresh_client()
    assertion = request_assertion(client, idp, owner.email)

    response = post_saml(client, other_company, idp.encode_response(assertion))

    assert response.status_code == 403
    assert not is_signed_in(client)


def test_an_address_of_another_tenants_domain_is_refused(
    company: Company, owner: Person, cast: Cast, idp: SamlProvider
) -> None:
    other_company = make_saml_company(SamlProvider())
    for victim in (other_company.people[Role.OWNER], cast.globex.administrator):
        client = fresh_client()
        assertion = request_assertion(client, idp, owner.email)

        response = post_saml(client, company, idp.encode_response(assertion, email=victim.email))

        assert b"is not allowed to sign in users of this e-mail domain" in response.content
        assert not is_signed_in(client)


BOMB = (  # entities that grow tenfold at each level
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)
# An entity with the content of a local file.
READER = '<!DOCTYPE x [<!ENTITY c SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("doctype", [BOMB, READER, '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd">'])
def test_document_type_declarations_are_refused(
    company: Company, owner: Person, idp: SamlProvider, doctype: str
) -> None:
    client = fresh_client()
    xml = idp.build_response(request_assertion(client, idp, owner.email))

    assert post_saml(client, company, encode(doctype + xml)).status_code == 403
    with pytest.raises(InvalidValue):
        configure_saml(company, idp.metadata(before=doctype))


@pytest.mark.parametrize(
    "saml_response",
    [
        *("", "x", "é", "AAAA", encode("<x/>"), encode("<x>" * 9_000), "A" * 300_000),
        encode('<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"/>'),
    ],
    ids=[
        *("empty", "text", "no ASCII", "binary", "other XML", "open tags", "too long"),
        "no assertion",
    ],
)
def test_malformed_responses_are_refused(company: Company, saml_response: str) -> None:
    assert post_saml(fresh_client(), company, saml_response).status_code == 403


def test_a_tenant_without_a_saml_provider_is_not_found(cast: Cast, idp: SamlProvider) -> None:
    unknown_tenant_id = "00000000-0000-0000-0000-000000000000"
    for tenant_id in (cast.globex.tenant_id, unknown_tenant_id):
        response = Client().post(f"/sign-in/saml/{tenant_id}", {"SAMLResponse": "x"})
        assert response.status_code == 404

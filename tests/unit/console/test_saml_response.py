"""SAML responses: accepted ones, and the reasons for rejecting others.

A signature that is not in the expected form is rejected before libxmlsec verifies it. The
verification would execute the transforms that the signature names.
"""

import re
from contextlib import suppress
from dataclasses import replace

import pytest
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Saml

from caret.foundation.ids import TenantId
from console.sign_in.sso.saml_response import InvalidSamlResponse, ServiceProvider, read_response
from tenants.identity.sso.queries import SamlProvider as KnownProvider
from tenants.identity.sso.saml_metadata import parse_metadata
from tests.fakes.saml_provider import AssertionData, SamlProvider, encode

ACS = "https://caret.example/acs"
SERVICE_PROVIDER = ServiceProvider("https://caret.example/us", ACS)
ASSERTION = AssertionData(
    email="olga@acme.example",
    request_id="_request-1",
    acs_url=ACS,
    audience=SERVICE_PROVIDER.entity_id,
    recipient=ACS,
    confirmed_request_id="_request-1",
)
XSLT = "http://www.w3.org/TR/1999/REC-xslt-19991116"
EXCLUSIVE_C14N = "http://www.w3.org/2001/10/xml-exc-c14n#"
ENVELOPED = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"


@pytest.fixture(scope="module")
def idp() -> SamlProvider:
    return SamlProvider()


def read_email(idp: SamlProvider, xml: str) -> str:
    """Return the email address of the user that the response signs in.

    Raises InvalidSamlResponse.
    """
    metadata = parse_metadata(idp.metadata())
    known_provider = KnownProvider(
        TenantId("acme"), metadata.entity_id, metadata.sso_url, metadata.certificates
    )
    return read_response(encode(xml), known_provider, SERVICE_PROVIDER).email


def test_a_response_in_the_expected_form_is_accepted(idp: SamlProvider) -> None:
    assert read_email(idp, idp.build_response(ASSERTION)) == "olga@acme.example"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ENVELOPED, XSLT),
        (
            f'<ds:CanonicalizationMethod Algorithm="{EXCLUSIVE_C14N}"',
            f'<ds:CanonicalizationMethod Algorithm="{XSLT}"',
        ),
        ("<ds:KeyInfo>", "<ds:Object>x</ds:Object><ds:KeyInfo>"),
        ("</ds:SignedInfo>", '<ds:Reference URI="#x"/></ds:SignedInfo>'),
        ('<ds:Reference URI="#', '<ds:Reference URI="http://127.0.0.1/#'),
        (Saml.RSA_SHA256, "http://www.w3.org/2000/09/xmldsig#hmac-sha1"),
    ],
)
def test_a_signature_with_other_transforms_or_keys_is_rejected(
    idp: SamlProvider, before: str, after: str
) -> None:
    xml = idp.build_response(ASSERTION)
    assert before in xml

    with pytest.raises(InvalidSamlResponse, match="signature_form"):
        read_email(idp, xml.replace(before, after))


def test_a_weak_digest_is_rejected(idp: SamlProvider) -> None:
    with pytest.raises(InvalidSamlResponse, match="signature_form"):
        read_email(idp, idp.build_response(replace(ASSERTION, algorithm=Saml.RSA_SHA1)))


def test_a_signed_response_with_an_unsigned_assertion_is_rejected(idp: SamlProvider) -> None:
    with pytest.raises(InvalidSamlResponse, match="assertion_not_signed"):
        read_email(
            idp, idp.build_response(replace(ASSERTION, is_signed=False, signs_response=True))
        )


def test_a_second_audience_restriction_is_rejected(idp: SamlProvider) -> None:
    separator = (
        "</saml:Audience></saml:AudienceRestriction><saml:AudienceRestriction><saml:Audience>"
    )
    both_audiences = f"{SERVICE_PROVIDER.entity_id}{separator}https://elsewhere.example"

    with pytest.raises(InvalidSamlResponse, match="wrong_audience"):
        read_email(idp, idp.build_response(replace(ASSERTION, audience=both_audiences)))


def test_a_repeated_id_is_rejected(idp: SamlProvider) -> None:
    repeated_id = f' ID="{ASSERTION.assertion_id}"'
    xml = idp.build_response(ASSERTION)
    xml = re.sub(r' ID="_[0-9a-f]{32}"', repeated_id, xml, count=1)  # the ID of the response

    with pytest.raises(InvalidSamlResponse, match="repeated_id"):
        read_email(idp, xml)


def test_an_encrypted_assertion_is_rejected(idp: SamlProvider) -> None:
    xml = re.sub(
        r"<saml:Assertion.*</saml:Assertion>",
        "<saml:EncryptedAssertion/>",
        idp.build_response(ASSERTION),
        flags=re.DOTALL,
    )

    with pytest.raises(InvalidSamlResponse, match="not_one_plain_assertion"):
        read_email(idp, xml)


def test_an_attribute_may_be_repeated(idp: SamlProvider) -> None:
    roles = (("Role", "developer"), ("Role", "auditor"), ("Role", "developer"))

    assert (
        read_email(idp, idp.build_response(replace(ASSERTION, attributes=roles)))
        == "olga@acme.example"
    )


def test_a_repeated_equal_email_address_is_accepted(idp: SamlProvider) -> None:
    assertion = replace(ASSERTION, has_name_id=False, has_email_attribute=False)
    equal_emails = (("mail", "olga@acme.example"), ("mail", "olga@acme.example"))

    assert (
        read_email(idp, idp.build_response(replace(assertion, attributes=equal_emails)))
        == "olga@acme.example"
    )


def test_two_different_email_addresses_are_rejected(idp: SamlProvider) -> None:
    assertion = replace(ASSERTION, has_name_id=False, has_email_attribute=False)
    two_emails = (("mail", "olga@acme.example"), ("mail", "otto@acme.example"))

    with pytest.raises(InvalidSamlResponse, match="no_email"):
        read_email(idp, idp.build_response(replace(assertion, attributes=two_emails)))


def test_an_email_attribute_suffices_without_a_name_id(idp: SamlProvider) -> None:
    assert (
        read_email(idp, idp.build_response(replace(ASSERTION, has_name_id=False)))
        == "olga@acme.example"
    )


@pytest.mark.parametrize("has_email_attribute", [True, False])
def test_a_name_id_for_another_service_is_rejected(
    idp: SamlProvider, has_email_attribute: bool
) -> None:
    assertion = replace(ASSERTION, sp_name_qualifier="https://x.example/sp")
    assertion = replace(assertion, has_email_attribute=has_email_attribute)

    with pytest.raises(InvalidSamlResponse, match="sp_name_qualifier_name_mismatch"):
        read_email(idp, idp.build_response(assertion))


def test_a_name_id_for_this_service_is_accepted(idp: SamlProvider) -> None:
    assertion = replace(
        ASSERTION, sp_name_qualifier=SERVICE_PROVIDER.entity_id, has_email_attribute=False
    )

    assert read_email(idp, idp.build_response(assertion)) == "olga@acme.example"


def test_a_response_without_an_email_address_is_rejected(idp: SamlProvider) -> None:
    assertion = replace(ASSERTION, has_name_id=False, has_email_attribute=False)

    with pytest.raises(InvalidSamlResponse, match="no_email"):
        read_email(idp, idp.build_response(assertion))


ENCRYPTED_ID = (
    '<saml:EncryptedID><xenc:EncryptedData xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"/>'
    "</saml:EncryptedID>"
)
# Found by fuzzing: with each of these, python3-saml raises or raised an unexpected error. Each pair
# is a pattern and its replacement, applied before the provider signs.
SIGNED_MUTATIONS = [
    (r"<saml:NameID.*</saml:NameID>", ENCRYPTED_ID),
    (r'AuthnInstant="[^"]+"', 'AuthnInstant="0001-01-01T00:00:00+14:00"'),
    (r'AuthnInstant="[^"]+"', 'AuthnInstant="2026-11-24T24:00:00Z"'),
    (r'AuthnInstant="[^"]+"', 'AuthnInstant="10000-01-01T00:00:00Z"'),
    (r'AuthnInstant="([^"]+)"', r'AuthnInstant="\1" SessionNotOnOrAfter="-0001-01-01T00:00:00Z"'),
    (r'AuthnInstant="([^"]+)"', r'AuthnInstant="\1" SessionNotOnOrAfter="9999-12-31T24:00:00Z"'),
    (r'NotBefore="[^"]+"', 'NotBefore="9999-12-31T23:59:59-14:00"'),
    (r'NotBefore="[^"]+"', 'NotBefore="2026-11-24T24:00:00Z"'),
    (r'(<saml:Conditions.*)NotOnOrAfter="[^"]+"', r'\1NotOnOrAfter="10000-01-01T00:00:00Z"'),
    (r"<saml:NameID.*</saml:NameID>", '<saml:NameID SPNameQualifier="%(x)s">%s</saml:NameID>'),
    (r"<saml:Subject>.*</saml:Subject>", ""),
    (r"<saml:AttributeValue>[^<]*", "<saml:AttributeValue><saml:NameID/>"),
    (r"<saml:Issuer>[^<]*", "<saml:Issuer>%s{0}"),
]


@pytest.mark.parametrize(("pattern", "text"), SIGNED_MUTATIONS)
def test_a_hostile_provider_cannot_cause_an_unexpected_error(
    idp: SamlProvider, pattern: str, text: str
) -> None:
    assertion = replace(
        ASSERTION, edit=lambda xml: re.sub(pattern, text, xml, count=1, flags=re.DOTALL)
    )

    # The response may be accepted or rejected. Any other exception fails the test.
    with suppress(InvalidSamlResponse):
        assert read_email(idp, idp.build_response(assertion)) == "olga@acme.example"


# Changes of the part of a response that is not signed.
UNSIGNED_MUTATIONS = [
    (
        '<samlp:StatusCode\n Value="urn:oasis:names:tc:SAML:2.0:status:Success"/>',
        "<samlp:StatusCode/>",
    ),
    ("<samlp:Status>", "<samlp:Status><!-- c --><?pi x?>"),
    ('Version="2.0"', 'Version="&#xFFFE;"'),
    ("<saml:Issuer>", "<saml:Issuer/><saml:Issuer>"),
    ("<saml:Issuer>", "<saml:Issuer>\0"),
    ("<samlp:Response ", '<samlp:Response ID="x" '),
    ("<samlp:Response ", "<samlp:Response xmlns:xml='x' "),
    ("<samlp:Response", "<a>" * 5_001 + "<samlp:Response"),
]


# Numbers as IDs, because some of the texts are too long for an ID.
@pytest.mark.parametrize(
    ("before", "after"), UNSIGNED_MUTATIONS, ids=range(len(UNSIGNED_MUTATIONS))
)
def test_a_hostile_browser_cannot_cause_an_unexpected_error(
    idp: SamlProvider, before: str, after: str
) -> None:
    xml = idp.build_response(ASSERTION)
    assert before in xml

    # The response may be accepted or rejected. Any other exception fails the test.
    with suppress(InvalidSamlResponse):
        assert read_email(idp, xml.replace(before, after, 1)) == "olga@acme.example"

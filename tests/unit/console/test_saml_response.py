"""What is refused by its form alone, before libxmlsec is handed a signature, which it would run."""

import re
from dataclasses import replace

import pytest
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Saml

from caret.foundation.ids import TenantId
from console.sign_in.saml_response import NotProven, ServiceProvider, read_response
from tenants.identity.queries import SamlProvider as Known
from tenants.identity.saml_metadata import read_metadata
from tests.fakes.saml_provider import Said, SamlProvider, encoded

ACS = "https://caret.example/acs"
US = ServiceProvider("https://caret.example/us", ACS)
SAID = Said("olga@acme.example", "_asked", ACS, US.entity_id, ACS, "_asked")
XSLT = "http://www.w3.org/TR/1999/REC-xslt-19991116"
PLAIN = "http://www.w3.org/2001/10/xml-exc-c14n#"
ENVELOPED = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"


@pytest.fixture(scope="module")
def idp() -> SamlProvider:
    return SamlProvider()


def read(idp: SamlProvider, xml: str) -> str:
    """Whom it lets in. Raises NotProven."""
    told = read_metadata(idp.metadata())
    known = Known(TenantId("acme"), told.entity_id, told.sso_url, told.certificates)
    return read_response(encoded(xml), known, US).email


def test_an_answer_of_the_plain_form_is_read(idp: SamlProvider) -> None:
    assert read(idp, idp.response(SAID)) == "olga@acme.example"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ENVELOPED, XSLT),
        (
            f'<ds:CanonicalizationMethod Algorithm="{PLAIN}"',
            f'<ds:CanonicalizationMethod Algorithm="{XSLT}"',
        ),
        ("<ds:KeyInfo>", "<ds:Object>x</ds:Object><ds:KeyInfo>"),
        ("</ds:SignedInfo>", '<ds:Reference URI="#x"/></ds:SignedInfo>'),
        ('<ds:Reference URI="#', '<ds:Reference URI="http://127.0.0.1/#'),
        (Saml.RSA_SHA256, "http://www.w3.org/2000/09/xmldsig#hmac-sha1"),
    ],
)
def test_what_a_signature_names_is_not_run(idp: SamlProvider, before: str, after: str) -> None:
    xml = idp.response(SAID)
    assert before in xml

    with pytest.raises(NotProven, match="plain form"):
        read(idp, xml.replace(before, after))


def test_weak_digests_are_of_no_plain_form(idp: SamlProvider) -> None:
    with pytest.raises(NotProven, match="plain form"):
        read(idp, idp.response(replace(SAID, algorithm=Saml.RSA_SHA1)))


def test_a_signed_answer_around_an_unsigned_assertion_is_not_enough(idp: SamlProvider) -> None:
    with pytest.raises(NotProven, match="not signed"):
        read(idp, idp.response(replace(SAID, is_signed=False, signs_response=True)))


def test_two_of_one_name_are_refused(idp: SamlProvider) -> None:
    xml = idp.response(SAID)

    with pytest.raises(NotProven, match="twice"):
        read(idp, re.sub(r' ID="_[0-9a-f]{32}"', f' ID="{SAID.assertion_id}"', xml, count=1))


def test_encrypted_assertions_are_named_as_such(idp: SamlProvider) -> None:
    xml = re.sub(
        r"<saml:Assertion.*</saml:Assertion>",
        "<saml:EncryptedAssertion/>",
        idp.response(SAID),
        flags=re.DOTALL,
    )

    with pytest.raises(NotProven, match="unencrypted"):
        read(idp, xml)

"""A SAML identity provider that signs with its own key (libxmlsec) and asserts what a test wants.

It runs no server: the test carries the messages that a browser would carry.
"""

import base64
import secrets
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Saml
from onelogin.saml2.utils import OneLogin_Saml2_Utils
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

SSO_URL: Final = "https://login.example.com/saml"
_EMAIL: Final = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"
_NAMESPACES: Final = (
    'xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"'
    ' xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"'
)
_ASSERTION: Final = """<saml:Assertion {namespaces} ID="{id}" Version="2.0" IssueInstant="{now}">
<saml:Issuer>{issuer}</saml:Issuer><saml:Subject>
{name_id}<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">
<saml:SubjectConfirmationData {confirmed}/></saml:SubjectConfirmation></saml:Subject>
<saml:Conditions NotBefore="{since}" NotOnOrAfter="{until}">{restriction}</saml:Conditions>
<saml:AuthnStatement AuthnInstant="{signed_in_at}"><saml:AuthnContext><saml:AuthnContextClassRef
>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext>
</saml:AuthnStatement>{attributes}</saml:Assertion>"""
_NAME_ID: Final = (
    '<saml:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"{more}>'
    "{email}</saml:NameID>"
)
_ATTRIBUTE: Final = (
    '<saml:Attribute Name="{name}"><saml:AttributeValue>{text}</saml:AttributeValue>'
    "</saml:Attribute>"
)
_RESPONSE: Final = """<samlp:Response {namespaces} ID="{id}" Version="2.0"
 IssueInstant="{now}"{more}><saml:Issuer>{issuer}</saml:Issuer><samlp:Status><samlp:StatusCode
 Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>{assertion}</samlp:Response>"""


@dataclass(frozen=True)
class AssertionData:
    """The content of a response. A field that is None is left out, except `edit` and `issuer`."""

    email: str  # XML, so that a test can include markup
    request_id: str | None
    acs_url: str | None
    audience: str | None
    recipient: str | None
    confirmed_request_id: str | None
    lasts_s: float = 300.0
    signed_in_s_ago: float = 0.0
    requests_new_sign_in: bool = False  # whether the request had ForceAuthn
    has_name_id: bool = True
    sp_name_qualifier: str | None = None
    has_email_attribute: bool = True
    attributes: tuple[tuple[str, str], ...] = ()  # name and value of each further attribute
    # Changes the assertion before it is signed; None: no change.
    edit: Callable[[str], str] | None = None
    issuer: str | None = None  # None: the provider's own
    algorithm: str = Saml.RSA_SHA256
    is_signed: bool = True
    signs_response: bool = False
    assertion_id: str = field(default_factory=lambda: f"_{secrets.token_hex(16)}")


@dataclass
class SamlProvider:
    entity_id: str = "https://login.example.com/entity"
    sso_url: str = SSO_URL
    # The private key whose certificate is in the metadata.
    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )
    signed_in_email: str = ""  # of the user who is signed in at the provider
    signing_key: rsa.RSAPrivateKey | None = None  # None: `key`, so that signatures are valid
    clock_skew_s: float = 0.0  # above 0: its clock is fast

    @property
    def certificate(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "login.example.com")])
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
        builder = builder.not_valid_before(begin).not_valid_after(begin + timedelta(days=3_650))
        return builder.public_key(self.key.public_key()).sign(self.key, hashes.SHA256())

    def metadata(self, **changes: str) -> str:
        """Return the metadata that an administrator enters in the console.

        `changes` replace values in it. `before` is text before the root element.
        """
        der = self.certificate.public_bytes(serialization.Encoding.DER)
        facts = {"certificate": base64.b64encode(der).decode(), "url": self.sso_url, "before": ""}
        facts |= {"binding": "HTTP-Redirect", "entity_id": self.entity_id} | changes
        return (
            '{before}<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata"'
            ' entityID="{entity_id}"><md:IDPSSODescriptor'
            ' protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">'
            '<md:KeyDescriptor use="signing"><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#">'
            "<X509Data><X509Certificate>{certificate}</X509Certificate></X509Data></KeyInfo>"
            "</md:KeyDescriptor><md:SingleSignOnService"
            ' Binding="urn:oasis:names:tc:SAML:2.0:bindings:{binding}" Location="{url}"/>'
            "</md:IDPSSODescriptor></md:EntityDescriptor>"
        ).format(**facts)

    def assertion_for(self, url: str, email: str) -> AssertionData:
        """Return the assertion that this user is signed in.

        It answers the request in `url`, to which Caret has redirected the browser.
        """
        parts = urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == self.sso_url
        request_xml = base64.b64decode(parse_qs(parts.query)["SAMLRequest"][0])
        # -15: raw deflate, without the header and the checksum of zlib's format.
        request = Xml.to_etree(zlib.decompress(request_xml, -15))
        acs_url = str(request.get("AssertionConsumerServiceURL"))
        (issuer,) = Xml.query(request, "/samlp:AuthnRequest/saml:Issuer")
        request_id = str(request.get("ID"))
        return AssertionData(
            email=escape(email),
            request_id=request_id,
            acs_url=acs_url,
            audience=str(issuer.text).strip(),
            recipient=acs_url,
            confirmed_request_id=request_id,
            requests_new_sign_in=request.get("ForceAuthn") == "true",
        )

    def encode_response(self, assertion_data: AssertionData, **changes: Any) -> str:
        """Return the response as a browser posts it."""
        return encode(self.build_response(replace(assertion_data, **changes)))

    def build_response(self, assertion_data: AssertionData) -> str:
        assertion = self._assertion(assertion_data)
        if assertion_data.is_signed:
            assertion = self._sign(assertion, assertion_data)
        more = {"InResponseTo": assertion_data.request_id, "Destination": assertion_data.acs_url}
        response = _RESPONSE.format(
            namespaces=_NAMESPACES,
            id=f"_{secrets.token_hex(16)}",
            now=self._instant(0),
            more="".join(f' {name}="{text}"' for name, text in more.items() if text is not None),
            issuer=assertion_data.issuer or self.entity_id,
            assertion=assertion,
        )
        return self._sign(response, assertion_data) if assertion_data.signs_response else response

    def _assertion(self, assertion_data: AssertionData) -> str:
        confirmed = {
            "InResponseTo": assertion_data.confirmed_request_id,
            "Recipient": assertion_data.recipient,
            "NotOnOrAfter": self._instant(assertion_data.lasts_s),
        }
        audience = f"<saml:Audience>{assertion_data.audience}</saml:Audience>"
        restriction = f"<saml:AudienceRestriction>{audience}</saml:AudienceRestriction>"
        assertion = _ASSERTION.format(
            namespaces=_NAMESPACES,
            id=assertion_data.assertion_id,
            now=self._instant(0),
            signed_in_at=self._instant(-assertion_data.signed_in_s_ago),
            since=self._instant(-60),  # valid at once, even if the clocks differ a little
            until=self._instant(assertion_data.lasts_s),
            issuer=assertion_data.issuer or self.entity_id,
            name_id=_name_id(assertion_data) if assertion_data.has_name_id else "",
            attributes=_attributes(assertion_data),
            confirmed=" ".join(f'{k}="{v}"' for k, v in confirmed.items() if v is not None),
            restriction="" if assertion_data.audience is None else restriction,
        )
        return assertion if assertion_data.edit is None else assertion_data.edit(assertion)

    def _instant(self, later_by_s: float) -> str:
        at = datetime.now(UTC) + timedelta(seconds=later_by_s + self.clock_skew_s)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _sign(self, xml: str, assertion_data: AssertionData) -> str:
        private_key = (self.signing_key or self.key).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        certificate = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        digest = Saml.SHA1 if assertion_data.algorithm == Saml.RSA_SHA1 else Saml.SHA256
        signed: bytes = OneLogin_Saml2_Utils.add_sign(
            xml,
            private_key.decode(),
            certificate,
            sign_algorithm=assertion_data.algorithm,
            digest_algorithm=digest,
        )
        return signed.decode()


def _name_id(assertion_data: AssertionData) -> str:
    qualifier = assertion_data.sp_name_qualifier
    more = "" if qualifier is None else f' SPNameQualifier="{qualifier}"'
    return _NAME_ID.format(more=more, email=assertion_data.email)


def _attributes(assertion_data: AssertionData) -> str:
    email = [(_EMAIL, assertion_data.email)] if assertion_data.has_email_attribute else []
    elements = [
        _ATTRIBUTE.format(name=name, text=text)
        for name, text in [*email, *assertion_data.attributes]
    ]
    return (
        f"<saml:AttributeStatement>{''.join(elements)}</saml:AttributeStatement>"
        if elements
        else ""
    )


def encode(xml: str) -> str:
    return base64.b64encode(xml.encode()).decode()

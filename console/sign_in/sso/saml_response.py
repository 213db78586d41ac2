"""Parsing and verification of a SAML identity provider's response.

python3-saml verifies signatures and times. This module adds two requirements:

1. The standard makes the audience, the recipient, the destination and the request's ID optional,
   and python3-saml accepts responses without them. This module requires them all.
2. python3-saml lets libxmlsec process the target of a signature's reference before it checks the
   reference. This module first requires one plain form:

       samlp:Response > one saml:Assertion > one ds:Signature

   Each signature covers exactly its parent element. Its transforms are enveloped-signature and
   exclusive canonicalization. The response may have a signature of its own.

This module knows neither HTTP requests nor accounts.
"""

import base64
import binascii
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from onelogin.saml2.errors import OneLogin_Saml2_Error, OneLogin_Saml2_ValidationError
from onelogin.saml2.response import OneLogin_Saml2_Response
from onelogin.saml2.settings import OneLogin_Saml2_Settings
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

from tenants.identity.sso.queries import SamlProvider

# Characters of base64. Responses with many groups have about 30,000.
MAX_RESPONSE_CHARS: Final = 256 * 1024
_DS: Final = "http://www.w3.org/2000/09/xmldsig#"  # namespace of XML signatures
_EXCLUSIVE_C14N: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
_ENVELOPED_SIGNATURE: Final = f"{_DS}enveloped-signature"
# Allowed algorithms.
_SIGNATURES: Final = {
    f"http://www.w3.org/2001/04/xmldsig-more#{scheme}-sha{bits}"
    for scheme in ("rsa", "ecdsa")
    for bits in (256, 384, 512)
}
_DIGESTS: Final = {
    "http://www.w3.org/2001/04/xmlenc#sha256",
    "http://www.w3.org/2001/04/xmldsig-more#sha384",
    "http://www.w3.org/2001/04/xmlenc#sha512",
}
_BEARER: Final = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
# XPath in an assertion: for which request and recipient it may be used, and until when.
_CONFIRMATION_DATA: Final = (
    f"./saml:Subject/saml:SubjectConfirmation[@Method='{_BEARER}']/saml:SubjectConfirmationData"
)
_POST_BINDING: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
_EMAIL_FORMAT: Final = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
_CLAIMS: Final = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
# Names that known providers give to the attribute. The first name with a single value is used.
_EMAIL_ATTRIBUTES: Final = (
    f"{_CLAIMS}/emailaddress",
    "urn:oid:0.9.2342.19200300.100.1.3",  # mail
    "email",
    "mail",
)
_NAME_ATTRIBUTES: Final = (
    "http://schemas.microsoft.com/identity/claims/displayname",
    "urn:oid:2.16.840.1.113730.3.1.241",  # displayName
    "displayName",
    "name",
)


class InvalidSamlResponse(Exception):
    def __init__(self, reason: str, detail: str = "") -> None:
        """Store `reason`, a short fixed text for the audit log, and `detail` for the process log.

        `detail` may quote the response.
        """
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


# Reasons by the error codes of python3-saml.
_LIBRARY_REASONS: Final = {
    code: name.lower()
    for name, code in vars(OneLogin_Saml2_ValidationError).items()
    if isinstance(code, int)
}
# Exceptions that python3-saml, lxml and the time parsers raise for malformed responses.
_PARSER_ERRORS: Final = (
    *(OneLogin_Saml2_Error, SyntaxError, ValueError, TypeError, LookupError),
    *(AttributeError, AssertionError, ArithmeticError, RecursionError),
)


@dataclass(frozen=True, slots=True)
class ServiceProvider:
    """Our identity towards a tenant's identity provider."""

    entity_id: str  # a URL
    acs_url: str  # of the assertion consumer service, the only URL for responses


@dataclass(frozen=True, slots=True)
class SamlAssertion:
    assertion_id: str  # chosen by the provider
    in_response_to: str  # ID of our request
    email: str  # the caller must check its domain
    name: str  # of the user; "": unknown
    signed_in_at_s: int  # Unix time by the provider's clock; may be long ago
    # Unix time of the assertion, by the provider's clock; None: stored by an older release.
    issued_at_s: int | None = None


def read_response(
    encoded: str, provider: SamlProvider, service_provider: ServiceProvider
) -> SamlAssertion:
    """Verify a response and return its assertion. `encoded` is the posted base64.

    Raises InvalidSamlResponse.
    """
    try:
        return _read_assertion(encoded, provider, service_provider)
    except OneLogin_Saml2_ValidationError as error:
        raise InvalidSamlResponse(
            _LIBRARY_REASONS.get(error.code, "invalid"), str(error)
        ) from error
    except _PARSER_ERRORS as error:
        raise InvalidSamlResponse("malformed", f"{type(error).__name__}: {error}") from error


def _read_assertion(
    encoded: str, provider: SamlProvider, service_provider: ServiceProvider
) -> SamlAssertion:
    """Verify a response and return its assertion.

    Raises InvalidSamlResponse, OneLogin_Saml2_ValidationError, _PARSER_ERRORS.
    """
    assertion = _require_plain_form(_parse_xml(encoded))
    response = _verify_signature(encoded, assertion, provider, service_provider)
    in_response_to = _require_own_request(response, assertion, service_provider)
    attributes = response.get_attributes()
    return SamlAssertion(
        assertion_id=str(assertion.get("ID")),
        in_response_to=in_response_to,
        email=_find_email(response.get_nameid_data(), attributes),
        name=_first_value(attributes, _NAME_ATTRIBUTES) or "",
        signed_in_at_s=_signed_in_at_s(assertion),
        issued_at_s=_parse_instant(assertion.get("IssueInstant")),
    )


def settings_for(provider: SamlProvider, service_provider: ServiceProvider) -> dict[str, Any]:
    """Return the settings of python3-saml."""
    return {
        "strict": True,
        "sp": {
            "entityId": service_provider.entity_id,
            "assertionConsumerService": {"url": service_provider.acs_url, "binding": _POST_BINDING},
            "NameIDFormat": _EMAIL_FORMAT,
        },
        "idp": {
            "entityId": provider.issuer,
            "singleSignOnService": {"url": provider.sso_url},
            "x509certMulti": {"signing": list(provider.certificates)},
        },
        "security": {
            "wantAssertionsSigned": True,
            "wantAttributeStatement": False,  # a name ID with the e-mail address is enough
            "wantNameId": False,  # an attribute with the e-mail address is enough
            "requestedAuthnContext": False,
            "rejectDeprecatedAlgorithm": True,
            "allowRepeatAttributeName": True,  # Keycloak sends one `Role` for each role
            "allowSingleLabelDomains": True,  # hosts without a dot, such as https://caret
        },
    }


def request_data(service_provider: ServiceProvider) -> dict[str, str]:
    """Return the HTTP request's facts that python3-saml needs.

    They come from our settings, because clients can forge the Host header.
    """
    parts = urlsplit(service_provider.acs_url)
    https = "on" if parts.scheme == "https" else "off"
    return {
        "https": https,
        "http_host": parts.netloc,
        "script_name": "",
        "path_info": parts.path,
    }


def _parse_xml(encoded: str) -> Any:
    """Return the XML document. Raises InvalidSamlResponse."""
    if len(encoded) > MAX_RESPONSE_CHARS:
        raise InvalidSamlResponse("too_long")
    try:
        return Xml.to_etree(base64.b64decode("".join(encoded.split()), validate=True))
    except (SyntaxError, ValueError, binascii.Error) as error:  # lxml raises SyntaxError
        raise InvalidSamlResponse("not_xml", str(error)) from error


def _require_plain_form(document: Any) -> Any:
    """Require the plain form (see the module's docstring), and return the assertion.

    Raises InvalidSamlResponse.
    """
    ids = document.xpath("//@ID")
    if len(ids) != len(set(ids)):
        raise InvalidSamlResponse("repeated_id")
    assertions = Xml.query(document, "//saml:Assertion")
    if len(assertions) != 1 or len(Xml.query(document, "/samlp:Response/saml:Assertion")) != 1:
        raise InvalidSamlResponse("not_one_plain_assertion")
    (assertion,) = assertions
    if len(Xml.query(document, "/samlp:Response/saml:Assertion/ds:Signature")) != 1:
        raise InvalidSamlResponse("assertion_not_signed")
    if Xml.query(document, "//xenc:*"):
        raise InvalidSamlResponse("encrypted")
    if not all(map(_is_plain, Xml.query(document, "//ds:Signature"))):
        raise InvalidSamlResponse("signature_form")
    return assertion


def _is_plain(signature: Any) -> bool:
    """Return whether the signature covers exactly its parent, with allowed algorithms."""
    references = Xml.query(signature, "./ds:SignedInfo/ds:Reference")
    parent_uri = f"#{signature.getparent().get('ID')}"
    if [reference.get("URI") for reference in references] != [parent_uri]:
        return False
    transforms = _find_algorithms(signature, ".//ds:Transform")
    canonicalizations = _find_algorithms(signature, "./ds:SignedInfo/ds:CanonicalizationMethod")
    return (
        transforms == [_ENVELOPED_SIGNATURE, _EXCLUSIVE_C14N]
        and not Xml.query(signature, "./ds:Object")  # it could contain further elements
        and canonicalizations == [_EXCLUSIVE_C14N]
        and set(_find_algorithms(signature, "./ds:SignedInfo/ds:SignatureMethod")) <= _SIGNATURES
        and set(_find_algorithms(signature, ".//ds:DigestMethod")) <= _DIGESTS
    )


def _find_algorithms(signature: Any, path: str) -> list[str]:
    return [str(node.get("Algorithm")) for node in Xml.query(signature, path)]


def _verify_signature(
    encoded: str, assertion: Any, provider: SamlProvider, service_provider: ServiceProvider
) -> Any:
    """Return python3-saml's verified response.

    Raises InvalidSamlResponse, OneLogin_Saml2_ValidationError, _PARSER_ERRORS.
    """
    settings = OneLogin_Saml2_Settings(settings_for(provider, service_provider))
    response = OneLogin_Saml2_Response(settings, encoded)
    try:
        response.is_valid(request_data(service_provider), raise_exceptions=True)
    except OneLogin_Saml2_ValidationError as error:
        is_confirmation_wrong = (
            error.code == OneLogin_Saml2_ValidationError.WRONG_SUBJECTCONFIRMATION
        )
        if is_confirmation_wrong and _has_expired_confirmation(assertion):
            raise InvalidSamlResponse("confirmation_expired", str(error)) from error
        raise
    except Exception as error:  # python3-saml raises a bare Exception for malformed times
        raise InvalidSamlResponse("malformed", f"{type(error).__name__}: {error}") from error
    return response


def _has_expired_confirmation(assertion: Any) -> bool:
    """Return whether a subject confirmation has expired. Raises ValueError.

    python3-saml reports an expired confirmation like any wrong one. It does not tolerate a
    difference between the clocks, so a provider with a slow clock is a likely cause.
    """
    ends = [node.get("NotOnOrAfter") for node in Xml.query(assertion, _CONFIRMATION_DATA)]
    return any(end is not None and _parse_instant(end) <= time.time() for end in ends)


def _require_own_request(response: Any, assertion: Any, service_provider: ServiceProvider) -> str:
    """Return the ID of our request that the response answers.

    Raises InvalidSamlResponse if the response answers no request, is addressed to somebody else, or
    has no time of expiry.
    """
    request_id = str(response.document.get("InResponseTo") or "")
    if not request_id:
        raise InvalidSamlResponse("unsolicited")
    if response.document.get("Destination") != service_provider.acs_url:
        raise InvalidSamlResponse("wrong_destination")
    restrictions = Xml.query(assertion, "./saml:Conditions/saml:AudienceRestriction")
    if len(restrictions) != 1 or service_provider.entity_id not in response.get_audiences():
        raise InvalidSamlResponse("wrong_audience")
    if not Xml.query(assertion, "./saml:Conditions[@NotOnOrAfter]"):
        raise InvalidSamlResponse("no_expiry")
    confirmations = Xml.query(assertion, _CONFIRMATION_DATA)
    addressees = [(node.get("InResponseTo"), node.get("Recipient")) for node in confirmations]
    ends = [node.get("NotOnOrAfter") for node in confirmations]
    if addressees != [(request_id, service_provider.acs_url)] or not all(ends):
        raise InvalidSamlResponse("wrong_subjectconfirmation")
    return request_id


def _signed_in_at_s(assertion: Any) -> int:
    """Return the Unix time of the user's authentication. Raises InvalidSamlResponse."""
    instants = [node.get("AuthnInstant") for node in Xml.query(assertion, "./saml:AuthnStatement")]
    if len(instants) != 1 or instants[0] is None:
        raise InvalidSamlResponse("no_sign_in_time")
    try:
        return _parse_instant(instants[0])
    except ValueError as error:
        raise InvalidSamlResponse("no_sign_in_time") from error


def _parse_instant(text: str) -> int:
    """Return Unix seconds. Raises ValueError."""
    at = datetime.fromisoformat(text)
    # A time without a zone is in UTC (SAML Core, 1.3.3).
    return int(at.replace(tzinfo=at.tzinfo or UTC).timestamp())


def _find_email(name_id: dict[str, Any], attributes: dict[str, list[Any]]) -> str:
    """Return the e-mail address in the attributes, otherwise in the name ID.

    Raises InvalidSamlResponse if there is none.
    """
    email = _first_value(attributes, _EMAIL_ATTRIBUTES)
    if email is None and name_id.get("Format") == _EMAIL_FORMAT:
        email = name_id["Value"]
    if not email:
        raise InvalidSamlResponse("no_email")
    return str(email)


def _first_value(attributes: dict[str, list[Any]], names: tuple[str, ...]) -> str | None:
    """Return the text of the first attribute that has a single value, in the order of `names`.

    Equal values count as one. None: there is no such attribute.
    """
    for name in names:
        values = attributes.get(name, [])
        if values and isinstance(values[0], str) and all(value == values[0] for value in values):
            return values[0]
    return None

"""Parser of a SAML identity provider's metadata.

Caret trusts only metadata that an owner has set. It never fetches the metadata again later, and
never takes it from a SAML response.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

from tenants.base.errors import InvalidValue

MAX_METADATA_BYTES: Final = 256 * 1024  # the largest known metadata, of Entra ID, has 60 KB
_MAX_CERTIFICATES: Final = 8  # current ones and their successors
_MIN_RSA_BITS: Final = 2048  # as in NIST SP 800-131A
_REDIRECT: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
# The XPath expressions of the sign-in URL and of the signing certificates.
_SERVICE: Final = f"./md:SingleSignOnService[@Binding='{_REDIRECT}']"
_CERTIFICATE: Final = (
    "./md:KeyDescriptor[not(@use) or @use='signing']/ds:KeyInfo/ds:X509Data/ds:X509Certificate"
)


@dataclass(frozen=True, slots=True)
class SamlMetadata:
    entity_id: str
    sso_url: str  # the sign-in URL for the HTTP-Redirect binding
    certificates: tuple[str, ...]  # DER in base64; any of them may sign


def parse_metadata(text: str) -> SamlMetadata:
    """Parse metadata. Raises InvalidValue."""
    entities = Xml.query(_parse_xml(text), "/md:EntityDescriptor[md:IDPSSODescriptor]")
    if len(entities) != 1:
        raise InvalidValue("metadata", "The metadata must describe exactly one identity provider.")
    descriptor = Xml.query(entities[0], "./md:IDPSSODescriptor")[0]
    services = Xml.query(descriptor, _SERVICE)
    if not services:
        raise InvalidValue("metadata", "The provider does not support the HTTP-Redirect binding.")
    texts = ["".join((node.text or "").split()) for node in Xml.query(descriptor, _CERTIFICATE)]
    return SamlMetadata(
        entity_id=str(entities[0].get("entityID") or ""),
        sso_url=str(services[0].get("Location") or ""),
        certificates=_check_certificates(list(dict.fromkeys(texts))),
    )


def compute_fingerprint(certificate: str) -> str:
    """Return the SHA-256 of a certificate in hex. `certificate` is DER in base64."""
    return hashlib.sha256(base64.b64decode(certificate)).hexdigest()


def find_last_expiry(certificates: Iterable[str]) -> datetime:
    """Return the latest expiry time of the stored certificates (DER in base64)."""
    parsed = (x509.load_der_x509_certificate(base64.b64decode(text)) for text in certificates)
    return max(certificate.not_valid_after_utc for certificate in parsed)


def _parse_xml(text: str) -> Any:
    """Parse XML. Raises InvalidValue, also for a document type, which could define entities."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_METADATA_BYTES:
        raise InvalidValue(
            "metadata", "Metadata must have at most {most} bytes.", most=MAX_METADATA_BYTES
        )
    try:
        return Xml.to_etree(data)
    except (SyntaxError, ValueError) as error:  # SyntaxError: lxml raises it for invalid XML
        raise InvalidValue(
            "metadata", "This is not valid XML, or it contains a document type."
        ) from error


def _check_certificates(certificates: list[str]) -> tuple[str, ...]:
    """Check the number and strength of certificates. Raises InvalidValue."""
    if not 1 <= len(certificates) <= _MAX_CERTIFICATES:
        raise InvalidValue(
            "metadata",
            "The metadata must contain 1 to {most} signing certificates.",
            most=_MAX_CERTIFICATES,
        )
    if not all(map(_is_strong, certificates)):
        raise InvalidValue("metadata", "A signing certificate is invalid, or its key is too weak.")
    return tuple(certificates)


def _is_strong(certificate: str) -> bool:
    """Return whether a certificate (DER in base64) is valid, with a strong RSA key or an EC key."""
    try:
        public_key = x509.load_der_x509_certificate(base64.b64decode(certificate)).public_key()
    except (ValueError, binascii.Error, UnsupportedAlgorithm):
        return False
    if isinstance(public_key, rsa.RSAPublicKey):
        return public_key.key_size >= _MIN_RSA_BITS
    return isinstance(public_key, ec.EllipticCurvePublicKey)

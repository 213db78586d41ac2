"""Verifies deletion certificates, by public keys alone. Knows neither database nor settings."""

import json
from typing import Any, Final

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document

PURPOSE: Final = "deletion-certificate/1"
KIND: Final = "caret-deletion-certificate"


def verify_certificate(text: bytes, keys: PublicKeys) -> dict[str, Any]:
    """The document. Raises BadSignature for what is no certificate, or not as it was signed; one
    byte more or less is enough."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise BadSignature("it is not valid JSON") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise BadSignature("it is not a deletion certificate")
    verify_document(keys, document, purpose=PURPOSE)
    if canonicalize(document) != text:
        raise BadSignature("it was changed after it was signed")
    return document

"""Verifier of deletion certificates that needs public keys only: no database or settings."""

import json
from typing import Any, Final

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document

PURPOSE: Final = "deletion-certificate/1"
KIND: Final = "caret-deletion-certificate"


def verify_certificate(text: bytes, keys: PublicKeys) -> dict[str, Any]:
    """Verify a certificate and return its document.

    Raises BadSignature for other text, or if a single byte differs.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise BadSignature("it is not JSON") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise BadSignature("it is not a deletion certificate")
    verify_document(keys, document, purpose=PURPOSE)
    if canonicalize(document) != text:
        raise BadSignature("its JSON is not in the canonical form that was signed")
    return document

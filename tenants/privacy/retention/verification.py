"""Verifier of deletion certificates that needs public keys only: no database or settings.

`manage.py verify_certificate FILE --public-key KEYS` runs it. It needs Caret's code, but no running
service. KEYS is a file with the output of `manage.py show_signing_keys`.
"""

import argparse
import json
from typing import Any, Final

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document
from tenants.base.signatures.verifier_cli import VerifierCli, open_file

PURPOSE: Final = "deletion-certificate/1"
KIND: Final = "caret-deletion-certificate"


def verify_certificate(text: bytes, keys: PublicKeys) -> dict[str, Any]:
    """Verify a certificate and return its document.

    Raises BadSignature if the text is not a certificate, or if any byte was changed.
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


def main(argv: list[str]) -> int:
    return _CLI.run(argv)


def _verify_file(options: argparse.Namespace, keys: PublicKeys) -> str:
    with open_file(options.file) as certificate:
        document = verify_certificate(certificate.read(), keys)
    return (
        f"OK: certificate {document['number']} of the tenant {document['tenant']}"
        f" ({document['tenant_id']}), issued {document['issued_at']}, signed by the key"
        f" {document['key_id']}.\n"
    )


_CLI: Final = VerifierCli(
    command="verify_certificate",
    description="Verify that a deletion certificate is unchanged.",
    broken_error=BadSignature,
    verify=_verify_file,
)

"""`manage.py verify_certificate FILE --public-key KEYS`: runs without any other part of Caret."""

import argparse
import sys
from pathlib import Path

from caret.foundation.crypto.signing import BadSignature
from tenants.base.verifier_cli import (
    BROKEN,
    EXIT_CODES,
    OK,
    UNUSABLE,
    UnreadableInput,
    add_public_key,
    open_file,
    read_keys,
)
from tenants.privacy.retention.verification import verify_certificate


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        keys = read_keys(options.public_key)
        with open_file(options.certificate) as certificate:
            document = verify_certificate(certificate.read(), keys)
    except UnreadableInput as error:
        sys.stderr.write(f"verify_certificate: {error}\n")
        return UNUSABLE
    except BadSignature as error:
        sys.stdout.write(f"BROKEN: {error}.\n")
        return BROKEN
    sys.stdout.write(
        f"OK: certificate {document['number']} of the tenant {document['tenant']}"
        f" ({document['tenant_id']}), issued {document['issued_at']}, signed by the key"
        f" {document['key_id']}.\n"
    )
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py verify_certificate",
        description=f"Verifies that a deletion certificate is unchanged. {EXIT_CODES}",
    )
    parser.add_argument("certificate", type=Path, metavar="FILE")
    add_public_key(parser)
    return parser

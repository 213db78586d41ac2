"""`manage.py verify_certificate FILE [--public-key KEYS]`: works where nothing else of us does."""

import argparse
import sys
from pathlib import Path
from typing import Final

from caret.foundation.signing import BadPublicKeys, BadSignature, read_public_keys
from tenants.retention.verification import verify_certificate

KEYS_FILE: Final = "caret-signing-keys.json"  # as the console serves it
OK, BROKEN, UNUSABLE = 0, 1, 2


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    keys_file = options.public_key or options.certificate.with_name(KEYS_FILE)
    try:
        keys = read_public_keys(keys_file.read_bytes())
        document = verify_certificate(options.certificate.read_bytes(), keys)
    except (OSError, BadPublicKeys) as error:
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
        description="Says whether a deletion certificate is as it was signed. Exit codes: 0 sound,"
        " 1 broken, 2 not to be read.",
    )
    parser.add_argument("certificate", type=Path, metavar="FILE")
    parser.add_argument(
        "--public-key",
        type=Path,
        metavar="FILE",
        help=f"what `manage.py signing_keys` printed; {KEYS_FILE} beside it when left out",
    )
    return parser

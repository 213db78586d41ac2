"""`manage.py verify_audit EXPORT --public-key FILE`: runs without any other part of Caret."""

import argparse
import sys
from pathlib import Path

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
from tenants.security.audit.export_verification import (
    VerificationFailed,
    VerifiedExport,
    verify_export,
)


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        keys = read_keys(options.public_key)
        with open_file(options.export) as export:
            verified = verify_export(export, keys)
    except UnreadableInput as error:
        sys.stderr.write(f"verify_audit: {error}\n")
        return UNUSABLE
    except VerificationFailed as error:
        sys.stdout.write(f"BROKEN: {error}.\n")
        return BROKEN
    sys.stdout.write(_say(verified))
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py verify_audit",
        description="Verifies that an export of the audit log is complete and unchanged, or reports"
        f" its first bad entry. {EXIT_CODES}",
    )
    parser.add_argument("export", type=Path, metavar="EXPORT")
    add_public_key(parser)
    return parser


def _say(verified: VerifiedExport) -> str:
    header = verified.header
    period = f"{header['since'] or 'the beginning'} to {header['until'] or 'its making'}"
    span = f", {header['first_sequence']} to {header['last_sequence']}" if header["rows"] else ""
    return (
        f"OK: {header['rows']} entries{span}, of the tenant {header['tenant']}"
        f" ({header['tenant_id']}), from {period}; made {header['generated_at']}.\n"
        f"Signed by the key {verified.key_id}; {verified.num_heads} signed heads of it agree.\n"
    )

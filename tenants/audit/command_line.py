"""`manage.py verify_audit EXPORT [--public-key FILE]`: works where nothing else of Caret does."""

import argparse
import sys
from pathlib import Path
from typing import IO, Final

from caret.foundation.signing import BadPublicKeys, PublicKeys, read_public_keys
from tenants.audit.verification import Broken, Verified, verify_export

KEYS_FILE: Final = "caret-signing-keys.json"  # as the console serves it
OK, BROKEN, UNUSABLE = 0, 1, 2


class Unusable(Exception):
    pass


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        keys = _read_keys(options.public_key or options.export.with_name(KEYS_FILE))
        with _open(options.export) as export:
            verified = verify_export(export, keys)
    except Unusable as error:
        sys.stderr.write(f"verify_audit: {error}\n")
        return UNUSABLE
    except Broken as error:
        sys.stdout.write(f"BROKEN: {error}.\n")
        return BROKEN
    sys.stdout.write(_say(verified))
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py verify_audit",
        description="Says whether an export of the audit trail is whole and unchanged, or what is"
        " wrong with its first bad entry. Exit codes: 0 sound, 1 broken, 2 not to be read.",
    )
    parser.add_argument("export", type=Path, metavar="EXPORT")
    parser.add_argument(
        "--public-key",
        type=Path,
        metavar="FILE",
        help=f"what `manage.py signing_keys` printed; {KEYS_FILE} beside the export when left out",
    )
    return parser


def _read_keys(path: Path) -> PublicKeys:
    try:
        return read_public_keys(path.read_bytes())
    except OSError as error:
        raise Unusable(f"the public keys cannot be read: {error.strerror}: {path}") from None
    except BadPublicKeys as error:
        raise Unusable(f"{path}: {error}") from None


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise Unusable(f"the export cannot be read: {error.strerror}: {path}") from None


def _say(verified: Verified) -> str:
    header = verified.header
    period = f"{header['since'] or 'the beginning'} to {header['until'] or 'its making'}"
    span = f", {header['first_sequence']} to {header['last_sequence']}" if header["rows"] else ""
    return (
        f"OK: {header['rows']} entries{span}, of the tenant {header['tenant']}"
        f" ({header['tenant_id']}), from {period}; made {header['generated_at']}.\n"
        f"Signed by the key {verified.key_id}; {verified.num_heads} signed heads of it agree.\n"
    )

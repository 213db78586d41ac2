"""`manage.py verify_bundle FILE --public-key KEYS`: runs without any other part of Caret."""

import argparse
import sys
from pathlib import Path
from typing import Any

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
from tenants.compliance.data_subjects.verification import verify_bundle


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        keys = read_keys(options.public_key)
        with open_file(options.bundle) as bundle:
            manifest = verify_bundle(bundle, keys)
    except UnreadableInput as error:
        sys.stderr.write(f"verify_bundle: {error}\n")
        return UNUSABLE
    except BadSignature as error:
        sys.stdout.write(f"BROKEN: {error}.\n")
        return BROKEN
    sys.stdout.write(_say(manifest))
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py verify_bundle",
        description="Verifies that a bundle of personal data is complete and unchanged."
        f" {EXIT_CODES}",
    )
    parser.add_argument("bundle", type=Path, metavar="FILE")
    add_public_key(parser)
    return parser


def _say(manifest: dict[str, Any]) -> str:
    files = manifest["files"]
    return (
        f"OK: {len(files)} files, {sum(each['rows'] for each in files)} rows about the user"
        f" {manifest['user_id']} of the tenant {manifest['tenant']}, made"
        f" {manifest['generated_at']}, signed by the key {manifest['key_id']}.\n"
    )

"""`manage.py verify_export FILE --public-key KEYS`: runs without any other part of Caret."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from caret.foundation.crypto.signing import PublicKeys
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
from tenants.compliance.exports.evidence_pack_verification import verify_pack
from tenants.compliance.exports.verification import PROOF_SUFFIX, BrokenExport, verify_export

PACK: Final = "evidence_pack"
_NO_PROOF: Final = "There is no proof beside the ZIP, so only its content was verified.\n"


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        said = _verify(options, read_keys(options.public_key))
    except UnreadableInput as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename} cannot be read: {error.strerror}")
    except BrokenExport as error:
        sys.stdout.write(f"BROKEN: {error}.\n")
        return BROKEN
    sys.stdout.write(said)
    return OK


def _verify(options: argparse.Namespace, keys: PublicKeys) -> str:
    """Verify the file and return the report.

    An evidence pack is also verified from within, and needs no proof beside it. Raises
    BrokenExport, UnreadableInput, OSError.
    """
    has_proof = options.proof is not None or _proof_file(options).exists()
    with open_file(options.file) as data:
        if options.file.suffix == ".zip" and not has_proof:
            return _say_pack(verify_pack(data, keys)) + _NO_PROOF
        document = verify_export(data, _proof_file(options).read_bytes(), keys)
        if document["definition"] != PACK:
            return _say(document)
        return _say(document) + _say_pack(verify_pack(data, keys))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py verify_export",
        description="Verifies that an exported file is complete and unchanged, or reports what is"
        f" wrong with it or with its proof. {EXIT_CODES}",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--proof", type=Path, metavar="FILE", help=f"default: FILE{PROOF_SUFFIX}")
    add_public_key(parser)
    return parser


def _proof_file(options: argparse.Namespace) -> Path:
    file: Path = options.file
    return options.proof or file.with_name(file.name + PROOF_SUFFIX)


def _say(document: dict[str, Any]) -> str:
    since, until = document["since"], document["until"]
    period = "without a period" if since is None else f"from {since} to {until}"
    return (
        f"OK: {document['definition']} version {document['version']}, {document['rows']} rows, of"
        f" the tenant {document['tenant']} ({document['tenant_id']}), {period};"
        f" complete until {document['complete_until'] or 'no time yet'}.\n"
        f"Created {document['generated_at']}, signed by the key {document['key_id']}.\n"
    )


def _say_pack(manifest: dict[str, Any]) -> str:
    return (
        f"OK: {len(manifest['files'])} files of the evidence pack of {manifest['tenant']}"
        f" ({manifest['tenant_id']}), from {manifest['since']} to {manifest['until']},"
        f" signed by the key {manifest['key_id']}.\n"
    )


def _complain(sentence: str) -> int:
    sys.stderr.write(f"verify_export: {sentence}.\n")
    return UNUSABLE

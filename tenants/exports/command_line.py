"""`manage.py verify_export FILE --public-key KEYS`: works where nothing else of Caret does."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from caret.foundation.signing import BadPublicKeys, PublicKeys, read_public_keys
from tenants.exports.pack_verification import verify_pack
from tenants.exports.verification import PROOF_SUFFIX, Broken, verify_export

KEYS_FILE: Final = "caret-signing-keys.json"  # as the console serves it
OK, BROKEN, UNUSABLE = 0, 1, 2


PACK: Final = "evidence_pack"
_NO_PROOF: Final = "There is no proof of the ZIP itself beside it: what is inside was verified.\n"


class Unusable(Exception):
    pass


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        said = _verify(options, _read_keys(options))
    except Unusable as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename} cannot be read: {error.strerror}")
    except Broken as error:
        sys.stdout.write(f"BROKEN: {error}.\n")
        return BROKEN
    sys.stdout.write(said)
    return OK


def _verify(options: argparse.Namespace, keys: PublicKeys) -> str:
    """A pack verifies from within as well, and can do so alone. Raises Broken, OSError."""
    has_proof = options.proof is not None or _proof_file(options).exists()
    with options.file.open("rb") as data:
        if options.file.suffix == ".zip" and not has_proof:
            return _say_pack(verify_pack(data, keys)) + _NO_PROOF
        document = verify_export(data, _proof_file(options).read_bytes(), keys)
        if document["definition"] != PACK:
            return _say(document)
        return _say(document) + _say_pack(verify_pack(data, keys))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py verify_export",
        description="Says whether an exported file is whole and as it was signed, or what is wrong"
        " with it or with its proof. Exit codes: 0 sound, 1 broken, 2 not to be read.",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument(
        "--proof", type=Path, metavar="FILE", help=f"FILE{PROOF_SUFFIX} when left out"
    )
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument(
        "--public-key",
        type=Path,
        metavar="FILE",
        help="what `manage.py signing_keys` printed, got before and from elsewhere",
    )
    keys.add_argument(
        "--trust-keys-beside",
        action="store_true",
        help=f"take {KEYS_FILE} beside the export: whoever made up the one made up the other",
    )
    return parser


def _proof_file(options: argparse.Namespace) -> Path:
    file: Path = options.file
    return options.proof or file.with_name(file.name + PROOF_SUFFIX)


def _read_keys(options: argparse.Namespace) -> PublicKeys:
    if options.public_key is None and not options.trust_keys_beside:
        raise Unusable(
            "name the public keys by --public-key; keys that lie beside an export prove nothing"
            " (--trust-keys-beside takes them nonetheless)"
        )
    path = options.public_key or options.file.with_name(KEYS_FILE)
    try:
        return read_public_keys(path.read_bytes())
    except BadPublicKeys as error:
        raise Unusable(f"{path}: {error}") from None


def _say(document: dict[str, Any]) -> str:
    since, until = document["since"], document["until"]
    period = "as it was then" if since is None else f"from {since} to {until}"
    return (
        f"OK: {document['definition']} version {document['version']}, {document['rows']} rows, of"
        f" the tenant {document['tenant']} ({document['tenant_id']}), {period};"
        f" complete until {document['complete_until'] or 'no time yet'}.\n"
        f"Made {document['generated_at']}, signed by the key {document['key_id']}.\n"
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

"""Verifier of data subject bundles. It needs the public keys, but no database or settings.

`manage.py verify_bundle FILE --public-key KEYS` runs it. The command needs Caret's code, but no
running service. KEYS is a file with the output of `manage.py show_signing_keys`. The manifest of a
bundle:

{"kind": "caret-data-subject-bundle", "format": 1, "tenant", "tenant_id", "user_id",
 "generated_at", "chain_head", "files": [{"name", "rows", "bytes", "sha256"}],
 "key_id", "signature"}
"""

import argparse
import hashlib
import json
import zlib
from typing import IO, Any, Final
from zipfile import BadZipFile, ZipFile

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document
from tenants.base.signatures.verifier_cli import VerifierCli, open_file

PURPOSE: Final = "data-subject-bundle/1"  # part of the signed data
KIND: Final = "caret-data-subject-bundle"
MANIFEST: Final = "manifest.json"
_MAX_MANIFEST_BYTES: Final = 1 << 20
_CHUNK_BYTES: Final = 1 << 20
# Exceptions of zipfile for damaged or encrypted files, and of json.
_UNREADABLE: Final = (
    *(BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError),
    *(KeyError, ValueError, RecursionError),
)


def verify_bundle(file: IO[bytes], keys: PublicKeys) -> dict[str, Any]:
    """Verify a bundle and return its manifest. Files are read in pieces.

    Raises BadSignature if the file is not a bundle, or if a file in it was changed, added or
    removed.
    """
    try:
        with ZipFile(file) as archive:
            manifest = _read_manifest(archive, keys)
            for entry in manifest["files"]:
                _verify_entry(archive, entry)
    except _UNREADABLE as error:
        raise BadSignature(
            "the file is not a readable personal data export ({kind})", kind=type(error).__name__
        ) from None
    return manifest


def _read_manifest(archive: ZipFile, keys: PublicKeys) -> dict[str, Any]:
    with archive.open(MANIFEST) as file:
        content = file.read(_MAX_MANIFEST_BYTES)
    manifest = json.loads(content)
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise BadSignature("the file is not a personal data export")
    verify_document(keys, manifest, purpose=PURPOSE)
    if canonicalize(manifest) != content:
        raise BadSignature("the manifest was changed after it was signed")
    names = [file["name"] for file in manifest["files"]] + [MANIFEST]
    if sorted(archive.namelist()) != sorted(names):
        raise BadSignature("the files differ from the manifest")
    return manifest


def _verify_entry(archive: ZipFile, entry: dict[str, Any]) -> None:
    digest, num_left = hashlib.sha256(), entry["bytes"]
    with archive.open(entry["name"]) as file:
        # One byte more than declared: a longer file differs and is not read to its end.
        while piece := file.read(min(_CHUNK_BYTES, num_left + 1)):
            digest.update(piece)
            num_left -= len(piece)
            if num_left < 0:
                break
    if num_left or digest.hexdigest() != entry["sha256"]:
        raise BadSignature("{name} was changed after it was signed", name=entry["name"])


def main(argv: list[str]) -> int:
    return _CLI.run(argv)


def _verify_file(options: argparse.Namespace, keys: PublicKeys) -> str:
    with open_file(options.file) as bundle:
        manifest = verify_bundle(bundle, keys)
    files = manifest["files"]
    return (
        f"OK: {len(files)} files, {sum(file['rows'] for file in files)} rows about the user"
        f" {manifest['user_id']} of the tenant {manifest['tenant']}, created"
        f" {manifest['generated_at']}, signed by the key {manifest['key_id']}.\n"
    )


_CLI: Final = VerifierCli(
    command="verify_bundle",
    description="Verify that an export of personal data is complete and unchanged.",
    broken_error=BadSignature,
    verify=_verify_file,
)

"""Verifier of evidence packs. It needs the public keys, but no database or settings.

It verifies the manifest, each file by its size and digest in the manifest, and in addition the
proofs of the exports, the certificates and the audit trail. The manifest:

    {"kind": "caret-evidence-pack", "format": 1, "export_id", "tenant", "tenant_id", "since",
     "until", "generated_at", "files": [{"name", "bytes", "sha256"}], "key_id", "signature"}
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import IO, Any, Final
from zipfile import BadZipFile, ZipFile

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document
from tenants.compliance.exports.verification import (
    FORMAT,
    PROOF_SUFFIX,
    BrokenExport,
    Document,
    require_same,
    verify_proof,
)
from tenants.privacy.retention.verification import verify_certificate
from tenants.security.audit.export_verification import VerificationFailed as TrailBroken
from tenants.security.audit.export_verification import verify_export as verify_trail

KIND: Final = "caret-evidence-pack"
PURPOSE: Final = "evidence-pack/1"
MANIFEST: Final = "manifest.json"
README: Final = "README.txt"
KEYS_FILE: Final = "caret-signing-keys.json"
TRAIL: Final = "audit-trail.ndjson"
CERTIFICATES: Final = "certificates/"  # a folder
_MAX_MANIFEST_BYTES: Final = 16 << 20
_PIECE_BYTES: Final = 1 << 20
# Exceptions of zipfile for damaged or encrypted files, and of json.
_UNREADABLE: Final = (
    *(BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError),
    *(KeyError, ValueError, TypeError, RecursionError),
)


def verify_pack(file: IO[bytes], keys: PublicKeys) -> Document:
    """Verify a pack and return its manifest.

    Reads large files in pieces. Raises BrokenExport; its message names the file.
    """
    try:
        with ZipFile(file) as archive:
            manifest = _read_manifest(archive, keys)
            entries = {entry["name"]: entry for entry in manifest["files"]}
            for entry in entries.values():
                _verify_bytes(archive, entry)
            for name in entries:
                _verify_own_proof(archive, name, entries, keys)
    except _UNREADABLE as error:
        raise BrokenExport(f"the pack: it cannot be read ({type(error).__name__})") from None
    return manifest


def _read_manifest(archive: ZipFile, keys: PublicKeys) -> Document:
    with archive.open(MANIFEST) as file:
        content = file.read(_MAX_MANIFEST_BYTES)
    manifest = json.loads(content)
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise BrokenExport("the pack: its manifest is not that of an evidence pack")
    try:
        verify_document(keys, manifest, purpose=PURPOSE)
    except BadSignature as error:
        raise BrokenExport(f"the manifest: {error}") from None
    if canonicalize(manifest) != content:
        raise BrokenExport("the manifest was changed after it was signed")
    if manifest.get("format") != FORMAT:
        raise BrokenExport("the manifest: this verifier does not know its format")
    expected = [entry["name"] for entry in manifest["files"]] + [MANIFEST]
    if sorted(archive.namelist()) != sorted(expected):
        raise BrokenExport("the files in the pack differ from the manifest")
    return manifest


def _verify_bytes(archive: ZipFile, entry: Mapping[str, Any]) -> None:
    digest, num_left = hashlib.sha256(), entry["bytes"]
    with archive.open(entry["name"]) as file:
        # One byte more than declared: a longer file differs and is not read to its end.
        while num_left >= 0 and (piece := file.read(min(_PIECE_BYTES, num_left + 1))):
            digest.update(piece)
            num_left -= len(piece)
    if num_left or digest.hexdigest() != entry["sha256"]:
        raise BrokenExport(f"{entry['name']} was changed after it was signed")


def _verify_own_proof(
    archive: ZipFile, name: str, entries: Mapping[str, Mapping[str, Any]], keys: PublicKeys
) -> None:
    """Verify a file that is signed itself: a proof, a certificate or the audit trail."""
    try:
        if name.endswith(PROOF_SUFFIX):
            entry = entries[name.removesuffix(PROOF_SUFFIX)]
            document = verify_proof(archive.read(name), keys)
            require_same(document, num_bytes=entry["bytes"], sha256=entry["sha256"])
        elif name.startswith(CERTIFICATES):
            verify_certificate(archive.read(name), keys)
        elif name == TRAIL:
            with archive.open(name) as file:
                verify_trail(file, keys)
    except (BrokenExport, BadSignature, TrailBroken) as error:
        raise BrokenExport(f"{name}: {error}") from None

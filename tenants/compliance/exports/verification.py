"""Verifier of exports. It needs the public keys, but no database, settings or network.

A proof is a line of canonical JSON, so that any changed byte is noticed. The proof contains the
digest of all bytes of the file. Nothing in the proof or the file is trusted before the signature is
verified.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import IO, Any, Final

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document

KIND: Final = "caret-export-proof"
FORMAT: Final = 1
PURPOSE: Final = "export-proof/1"
PROOF_SUFFIX: Final = ".proof.json"  # appended to the file's name
_MAX_PROOF_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 1024 * 1024

Document = dict[str, Any]


class BrokenExport(Exception):
    """The proof or the data is broken. The message gives the reason."""


def verify_export(data: IO[bytes], proof: bytes, keys: PublicKeys) -> Document:
    """Verify a file by its proof and return the proof's document. Raises BrokenExport."""
    document = verify_proof(proof, keys)
    digest, num_bytes = hashlib.sha256(), 0
    for piece in _read_pieces(data):
        digest.update(piece)
        num_bytes += len(piece)
    require_same(document, num_bytes=num_bytes, sha256=digest.hexdigest())
    return document


def verify_proof(proof: bytes, keys: PublicKeys) -> Document:
    """Verify a proof and return its document. Raises BrokenExport."""
    document = _parse_proof(proof)
    try:
        verify_document(keys, document, purpose=PURPOSE)
    except BadSignature as error:
        raise BrokenExport(f"the proof: {error}") from None
    if document.get("format") != FORMAT:
        raise BrokenExport("the proof: this verifier does not know its format")
    return document


def require_same(document: Document, *, num_bytes: int, sha256: str) -> None:
    """Compare a file's size and digest with a verified proof. Raises BrokenExport."""
    if num_bytes != document["bytes"]:
        raise BrokenExport(
            f"the data: it has {num_bytes} bytes, but its proof says {document['bytes']}"
        )
    if sha256 != document["sha256"]:
        raise BrokenExport("the data: it was changed; its SHA-256 differs from that in its proof")


def _parse_proof(proof: bytes) -> Document:
    if len(proof) > _MAX_PROOF_BYTES:
        raise BrokenExport("the proof: it is too long")
    try:
        document = json.loads(proof)
        if isinstance(document, dict) and canonicalize(document) + b"\n" == proof:
            return _require_proof_kind(document)
    except (ValueError, RecursionError):
        pass
    raise BrokenExport("the proof: it is not in canonical form; it was changed or cut off")


def _require_proof_kind(document: Document) -> Document:
    if document.get("kind") != KIND:
        raise BrokenExport("the proof: it is not the proof of an export")
    return document


def _read_pieces(data: IO[bytes]) -> Iterable[bytes]:
    while piece := data.read(_PIECE_BYTES):
        yield piece

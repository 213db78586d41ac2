"""Verifies an export of the audit trail with public keys alone: no database, settings or network.

It reads line after line and stops at the first that is not as it must be. What an export says of
itself (its header's numbers, the keys it names) is only ever compared, never trusted.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, Final

from caret.foundation.crypto.canonical_json import canonical
from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document
from tenants.security.audit.hash_chain import (
    DEFINITION,
    FORMAT,
    HEAD_PURPOSE,
    HEADER_PURPOSE,
    TRAILER_PURPOSE,
    hash_of,
)

_MAX_LINE_BYTES: Final = 16 * 1024 * 1024

Document = dict[str, Any]


class Broken(Exception):
    """The text names the line, the entry, and what is wrong."""


@dataclass(frozen=True, slots=True)
class Verified:
    header: Document
    num_heads: int  # signed heads among the entries
    key_id: str


@dataclass(slots=True)
class _Reading:
    """How far it has come."""

    keys: PublicKeys
    header: Document
    sequence: int  # of the last entry
    hash: str | None  # of the last entry
    digest: str  # SHA-256 of all lines before this one
    num_heads: int = 0
    is_over: bool = False
    line: int = field(default=1)

    @property
    def where(self) -> str:
        return f"line {self.line}, after entry {self.sequence}"


def verify_export(export: IO[bytes], keys: PublicKeys) -> Verified:
    """Raises Broken."""
    digest = hashlib.sha256()
    line = export.readline(_MAX_LINE_BYTES)
    header = _check_header(_parse(line, "line 1, the header"), keys)
    reading = _Reading(
        keys, header, header["first_sequence"] - 1, header["previous_hash"], digest.hexdigest()
    )
    while not reading.is_over:
        digest.update(line)
        reading.digest = digest.hexdigest()
        reading.line += 1
        line = export.readline(_MAX_LINE_BYTES)
        if not line:
            raise Broken(_truncated(reading))
        expected = f"line {reading.line}, where entry {reading.sequence + 1} or the end should be"
        document = _parse(line, expected)
        _CHECKS.get(str(document.get("kind")), _check_nothing)(reading, document)
    if export.read(1):
        raise Broken(f"line {reading.line + 1}: there is something after the end")
    return Verified(header, reading.num_heads, header["key_id"])


def _parse(line: bytes, where: str) -> Document:
    """A line of canonical JSON, in its one spelling: no byte of it can be another."""
    try:
        document = json.loads(line)
        if isinstance(document, dict) and canonical(document) + b"\n" == line:
            return document
    except (ValueError, RecursionError):
        pass
    raise Broken(f"{where}: this is no line as exports have them; it was changed or cut off")


def _check_header(header: Document, keys: PublicKeys) -> Document:
    try:
        verify_document(keys, header, purpose=HEADER_PURPOSE)
    except BadSignature as error:
        raise Broken(f"line 1, the header: {error}") from None
    if header.get("format") != FORMAT or header.get("definition") != DEFINITION:
        raise Broken("line 1, the header: this verifier does not know the format")
    return header


def _check_entry(reading: _Reading, entry: Document) -> None:
    expected = reading.sequence + 1
    where = f"line {reading.line}, entry {expected}"
    if entry.get("hash") != hash_of(entry).hex():
        raise Broken(f"{where}: what it says does not have its hash; it was changed")
    sequence = entry.get("sequence")
    if sequence != expected:
        raise Broken(f"{where}: it is missing; entry {sequence} is in its place")
    if entry.get("tenant_id") != reading.header["tenant_id"]:
        raise Broken(f"{where}: it is another tenant's")
    if entry.get("previous_hash") != reading.hash:
        raise Broken(f"{where}: it does not follow from entry {reading.sequence}; one was replaced")
    if expected == reading.header["last_sequence"] and entry["hash"] != reading.header["last_hash"]:
        raise Broken(f"{where}: the header names another hash for it; it was replaced")
    reading.sequence, reading.hash = expected, entry["hash"]


def _check_head(reading: _Reading, head: Document) -> None:
    try:
        verify_document(reading.keys, head, purpose=HEAD_PURPOSE)
    except BadSignature as error:
        raise Broken(f"{reading.where}, a signed head: {error}") from None
    if head.get("tenant_id") != reading.header["tenant_id"]:
        raise Broken(f"{reading.where}, a signed head: it is another tenant's")
    if head.get("sequence") != reading.sequence:
        raise Broken(f"{reading.where}, a signed head: it is of entry {head.get('sequence')}")
    if head.get("hash") != reading.hash:
        raise Broken(
            f"entry {reading.sequence}, or one before it, was replaced: line {reading.line} is a"
            " signed head of this entry with another hash"
        )
    reading.num_heads += 1


def _check_trailer(reading: _Reading, trailer: Document) -> None:
    header = reading.header
    where = f"line {reading.line}, the trailer"
    if reading.sequence != header["last_sequence"]:
        raise Broken(f"{where}: {_truncated(reading)}")
    if trailer.get("sha256") != reading.digest or trailer.get("rows") != header["rows"]:
        raise Broken(f"{where}: it was made for another content; lines were changed or removed")
    try:
        verify_document(reading.keys, trailer, purpose=TRAILER_PURPOSE)
    except BadSignature as error:
        raise Broken(f"{where}: {error}") from None
    reading.is_over = True


def _check_nothing(reading: _Reading, _document: Document) -> None:
    raise Broken(f"{reading.where}: this is neither an entry nor a signed head nor the trailer")


def _truncated(reading: _Reading) -> str:
    last = reading.header["last_sequence"]
    if reading.sequence == last:
        return f"the export ends after line {reading.line - 1}, without its trailer"
    return f"the entries {reading.sequence + 1} to {last} are missing"


_CHECKS: Final[dict[str, Callable[[_Reading, Document], None]]] = {
    "entry": _check_entry,
    "head": _check_head,
    "trailer": _check_trailer,
}

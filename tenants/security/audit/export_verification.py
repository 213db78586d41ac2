"""Verifier of audit exports that needs public keys only: no database, settings or network.

`manage.py verify_audit FILE --public-key KEYS` runs it. It needs Caret's code, but no running
service. KEYS is a file with the output of `manage.py show_signing_keys`.

The verifier reads line by line and stops at the first wrong line. The header's numbers and hashes
are not trusted, but compared with the entries. A key ID only selects one of the given public keys.
"""

import argparse
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, Final

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document
from tenants.base.signatures.verifier_cli import VerifierCli, open_file
from tenants.security.audit.hash_chain import (
    DEFINITION,
    FORMAT,
    HEAD_PURPOSE,
    HEADER_PURPOSE,
    TRAILER_PURPOSE,
    hash_document,
)

_MAX_LINE_BYTES: Final = 16 * 1024 * 1024  # a longer line fails

Document = dict[str, Any]


class VerificationFailed(Exception):
    """The export is broken. The text names the line, the entry and the problem."""


@dataclass(frozen=True, slots=True)
class VerifiedExport:
    header: Document
    num_heads: int  # signed heads among the entries
    key_id: str  # of the key that signed the header


@dataclass(slots=True)
class _VerificationState:
    """Position and digests of a verification in progress."""

    keys: PublicKeys
    header: Document
    sequence: int  # of the last entry that was checked
    hash: str | None  # of the last entry that was checked
    digest: str  # SHA-256 of all lines before `line`
    num_heads: int = 0
    is_over: bool = False  # the trailer was checked
    line: int = 1  # number of the line that is being checked

    @property
    def where(self) -> str:
        return f"line {self.line}, after entry {self.sequence}"


def verify_export(export: IO[bytes], keys: PublicKeys) -> VerifiedExport:
    """Verify an export from its first line to its last. Raises VerificationFailed."""
    digest = hashlib.sha256()
    line = export.readline(_MAX_LINE_BYTES)
    header = _check_header(_parse_line(line, "line 1, the header"), keys)
    state = _VerificationState(
        keys=keys,
        header=header,
        sequence=header["first_sequence"] - 1,
        hash=header["previous_hash"],
        digest=digest.hexdigest(),
    )
    while not state.is_over:
        digest.update(line)
        state.digest = digest.hexdigest()
        state.line += 1
        line = export.readline(_MAX_LINE_BYTES)
        if not line:
            raise VerificationFailed(_describe_truncation(state))
        expected = f"line {state.line}, where entry {state.sequence + 1} or the end should be"
        document = _parse_line(line, expected)
        check = _CHECKS.get(str(document.get("kind")), _reject_unknown_line)
        check(state, document)
    if export.read(1):
        raise VerificationFailed(f"line {state.line + 1}: there is data after the end")
    return VerifiedExport(header, state.num_heads, header["key_id"])


def _parse_line(line: bytes, location: str) -> Document:
    """Parse a line of canonical JSON. Any other spelling of the same JSON fails."""
    try:
        document = json.loads(line)
        if isinstance(document, dict) and canonicalize(document) + b"\n" == line:
            return document
    except (ValueError, RecursionError):
        pass
    raise VerificationFailed(f"{location}: it is not in canonical form; it was changed or cut off")


def _check_header(header: Document, keys: PublicKeys) -> Document:
    try:
        verify_document(keys, header, purpose=HEADER_PURPOSE)
    except BadSignature as error:
        raise VerificationFailed(f"line 1, the header: {error}") from None
    if header.get("format") != FORMAT or header.get("definition") != DEFINITION:
        raise VerificationFailed("line 1, the header: this verifier does not know the format")
    return header


def _check_entry(state: _VerificationState, entry: Document) -> None:
    expected = state.sequence + 1
    location = f"line {state.line}, entry {expected}"
    if entry.get("hash") != hash_document(entry).hex():
        raise VerificationFailed(f"{location}: its content does not match its hash; it was changed")
    sequence = entry.get("sequence")
    if sequence != expected:
        raise VerificationFailed(f"{location}: it is missing; entry {sequence} is in its place")
    if entry.get("tenant_id") != state.header["tenant_id"]:
        raise VerificationFailed(f"{location}: it is another tenant's")
    if entry.get("previous_hash") != state.hash:
        raise VerificationFailed(
            f"{location}: it does not follow from entry {state.sequence}; one of them was replaced"
        )
    if expected == state.header["last_sequence"] and entry["hash"] != state.header["last_hash"]:
        raise VerificationFailed(
            f"{location}: the header names another hash for it; it was replaced"
        )
    state.sequence, state.hash = expected, entry["hash"]


def _check_head(state: _VerificationState, head: Document) -> None:
    try:
        verify_document(state.keys, head, purpose=HEAD_PURPOSE)
    except BadSignature as error:
        raise VerificationFailed(f"{state.where}, a signed head: {error}") from None
    if head.get("tenant_id") != state.header["tenant_id"]:
        raise VerificationFailed(f"{state.where}, a signed head: it is another tenant's")
    if head.get("sequence") != state.sequence:
        raise VerificationFailed(
            f"{state.where}, a signed head: it is of entry {head.get('sequence')}"
        )
    if head.get("hash") != state.hash:
        raise VerificationFailed(
            f"entry {state.sequence}, or one before it, was replaced: line {state.line} is a"
            " signed head of this entry with another hash"
        )
    state.num_heads += 1


def _check_trailer(state: _VerificationState, trailer: Document) -> None:
    header = state.header
    location = f"line {state.line}, the trailer"
    if state.sequence != header["last_sequence"]:
        raise VerificationFailed(f"{location}: {_describe_truncation(state)}")
    num_entries = state.sequence - header["first_sequence"] + 1
    if header["rows"] != num_entries:
        raise VerificationFailed(
            f"line 1, the header: it states {header['rows']} entries, but the export has"
            f" {num_entries}"
        )
    if trailer.get("rows") != header["rows"]:
        raise VerificationFailed(
            f"{location}: it states {trailer.get('rows')} entries, but the header states"
            f" {header['rows']}"
        )
    if trailer.get("sha256") != state.digest:
        raise VerificationFailed(
            f"{location}: its SHA-256 does not match the content; lines were changed or removed"
        )
    try:
        verify_document(state.keys, trailer, purpose=TRAILER_PURPOSE)
    except BadSignature as error:
        raise VerificationFailed(f"{location}: {error}") from None
    state.is_over = True


def _reject_unknown_line(state: _VerificationState, _document: Document) -> None:
    raise VerificationFailed(
        f"{state.where}: this is neither an entry nor a signed head nor the trailer"
    )


def _describe_truncation(state: _VerificationState) -> str:
    last = state.header["last_sequence"]
    if state.sequence == last:
        return f"the export ends after line {state.line - 1}, without its trailer"
    return f"the entries {state.sequence + 1} to {last} are missing"


_CHECKS: Final[dict[str, Callable[[_VerificationState, Document], None]]] = {
    "entry": _check_entry,
    "head": _check_head,
    "trailer": _check_trailer,
}


def main(argv: list[str]) -> int:
    return _CLI.run(argv)


def _verify_file(options: argparse.Namespace, keys: PublicKeys) -> str:
    with open_file(options.file) as export:
        verified = verify_export(export, keys)
    header = verified.header
    period = (
        f"{header['since'] or 'the beginning'} to {header['until'] or 'the time of the export'}"
    )
    entry_range = (
        f", {header['first_sequence']} to {header['last_sequence']}" if header["rows"] else ""
    )
    return (
        f"OK: {header['rows']} entries{entry_range}, of the tenant {header['tenant']}"
        f" ({header['tenant_id']}), from {period}; created {header['generated_at']}.\n"
        f"Signed by the key {verified.key_id};"
        f" {verified.num_heads} signed heads agree with the entries.\n"
    )


_CLI: Final = VerifierCli(
    command="verify_audit",
    description="Verify that an export of the audit log is complete and unchanged, or report"
    " its first bad entry.",
    broken_error=VerificationFailed,
    verify=_verify_file,
)

"""Exports of the audit log, made without a database, so that tests can change every part."""

import hashlib
import io
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import SigningKeys
from tenants.security.audit.export_verification import VerifiedExport, verify_export
from tenants.security.audit.hash_chain import (
    DEFINITION,
    FORMAT,
    GENESIS,
    HEAD_PURPOSE,
    HEADER_PURPOSE,
    TRAILER_PURPOSE,
    add_hash,
    build_head_document,
    format_timestamp,
)

KEYS = SigningKeys(bytes(range(32)), version=1)
OTHER_KEYS = SigningKeys(bytes(32), version=1)
TENANT_ID = "0b3c8f9e-5d1e-4b7a-9c1d-2f3a4b5c6d7e"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Export:
    header: dict[str, Any]
    body: list[dict[str, Any]]  # entries and signed heads
    keys: SigningKeys = KEYS

    def sign(self, *, trailer_rows: int | None = None) -> bytes:
        """Return the export's file with correct signatures for the header and the body.

        `trailer_rows` is the trailer's number of entries; None: that of the header.
        """
        header = self.keys.sign_document(self.header, purpose=HEADER_PURPOSE)
        signed_lines = b"".join(canonicalize(line) + b"\n" for line in [header, *self.body])
        trailer = {
            "kind": "trailer",
            "rows": self.header["rows"] if trailer_rows is None else trailer_rows,
            "sha256": hashlib.sha256(signed_lines).hexdigest(),
        }
        signed_trailer = self.keys.sign_document(trailer, purpose=TRAILER_PURPOSE)
        return signed_lines + canonicalize(signed_trailer) + b"\n"


def make_chain(
    count: int, *, tenant_id: str = TENANT_ID, first_action: str = "made"
) -> list[dict[str, Any]]:
    """Return entries whose hashes form a chain; only the first has `first_action`."""
    entries: list[dict[str, Any]] = []
    previous = GENESIS.hex()
    for number in range(1, count + 1):
        entry = add_hash(
            {
                "kind": "entry",
                "definition": DEFINITION,
                "tenant_id": tenant_id,
                "sequence": number,
                "previous_hash": previous,
                "at": format_timestamp(NOON + timedelta(minutes=number)),
                "action": first_action if number == 1 else "key.created",
                "after": {"name": "Zoë's laptop", "share": 0.25, "limit": None},
            }
        )
        entries.append(entry)
        previous = entry["hash"]
    return entries


def signed_head(entry: dict[str, Any], keys: SigningKeys = KEYS) -> dict[str, Any]:
    head = build_head_document(
        tenant_id=entry["tenant_id"],
        sequence=entry["sequence"],
        hash=bytes.fromhex(entry["hash"]),
        signed_at=NOON,
    )
    return keys.sign_document(head, purpose=HEAD_PURPOSE)


def export_of(entries: list[dict[str, Any]], *, heads_after: tuple[int, ...] = ()) -> Export:
    """Return an export with correct header fields, which `Export.sign` turns into a file.

    A signed head follows each entry whose sequence number is in `heads_after`.
    """
    body = []
    for entry in entries:
        body.append(entry)
        if entry["sequence"] in heads_after:
            body.append(signed_head(entry))
    header = {
        "kind": "header",
        "format": FORMAT,
        "definition": DEFINITION,
        "tenant_id": entries[0]["tenant_id"],
        "tenant": "acme",
        "since": None,
        "until": None,
        "rows": len(entries),
        "first_sequence": entries[0]["sequence"],
        "last_sequence": entries[-1]["sequence"],
        "previous_hash": entries[0]["previous_hash"],
        "last_hash": entries[-1]["hash"],
        "chain_head": {"sequence": entries[-1]["sequence"], "hash": entries[-1]["hash"]},
        "generated_at": format_timestamp(NOON),
    }
    return Export(header, body)


def signed_by(export: Export, keys: SigningKeys) -> Export:
    return replace(export, keys=keys)


def verify(export_bytes: bytes) -> VerifiedExport:
    return verify_export(io.BytesIO(export_bytes), KEYS.public_keys())

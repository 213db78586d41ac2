"""The hash chain of audit entries. Writing and verifying both use this definition.

    hash = SHA-256(RFC 8785 of the entry's document)      the document contains `previous_hash`
    the first entry's previous hash is GENESIS

A tenant's entries are numbered from 1 without gaps, in the order of their commits. Only this
`sequence` defines their order. The time `at` does not, because clocks can jump. DEFINITION is the
version of the document's form. A changed form gets a new version, and verifiers must still accept
the old one.
"""

import hashlib
import ipaddress
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol
from uuid import UUID

from caret.foundation.crypto.canonical_json import canonicalize, to_exact_numbers

DEFINITION: Final = 1
FORMAT: Final = "caret.audit"
# Signature purposes (caret.foundation.crypto.signing).
HEAD_PURPOSE: Final = "audit-head/1"
HEADER_PURPOSE: Final = "audit-export-header/1"
TRAILER_PURPOSE: Final = "audit-export-trailer/1"
GENESIS: Final = bytes(32)


class AuditEntryFields(Protocol):
    """The fields of an audit entry's row.

    IDs are UUIDs or strings. Hashes are bytes or memoryviews.
    """

    tenant_id: Any
    sequence: int
    previous_hash: Any
    id: UUID
    at: datetime
    actor_kind: str
    actor_id: Any
    # Actor.credential_name: the lookup ID of an API key, "scim:..." or "operator:...". "": a user's
    # session, or the platform.
    actor_key: str
    action: str
    target: str
    before: Any
    after: Any
    address: str | None  # the client's IP address
    request_id: str
    reason: str


def build_document(entry: AuditEntryFields) -> dict[str, Any]:
    """Return the entry without its hash, in the form that is hashed.

    Exports, and the messages to SIEM sinks, contain the entry in this form together with its hash.
    """
    return {
        "kind": "entry",
        "definition": DEFINITION,
        "tenant_id": str(entry.tenant_id),
        "sequence": entry.sequence,
        "previous_hash": bytes(entry.previous_hash).hex(),
        "id": str(entry.id),
        "at": format_timestamp(entry.at),
        "actor": {
            "kind": entry.actor_kind,
            "user_id": None if entry.actor_id is None else str(entry.actor_id),
            "key": entry.actor_key or None,
        },
        "action": entry.action,
        "target": entry.target,
        "before": to_exact_numbers(entry.before),
        "after": to_exact_numbers(entry.after),
        "address": normalize_ip(entry.address),
        "request_id": entry.request_id,
        "reason": entry.reason,
    }


def hash_document(document: Mapping[str, Any]) -> bytes:
    """Return the hash of a document. Its own `hash` field, if present, is left out.

    Raises ValueError for a document that has no canonical form.
    """
    hashed = {name: value for name, value in document.items() if name != "hash"}
    return hashlib.sha256(canonicalize(hashed)).digest()


def add_hash(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with its hash; a present `hash` field is replaced."""
    return {**document, "hash": hash_document(document).hex()}


def build_head_document(
    *, tenant_id: Any, sequence: int, hash: bytes, signed_at: datetime
) -> dict[str, Any]:
    """Return the document of a chain head: the sequence and hash of the entry that is signed."""
    return {
        "kind": "head",
        "definition": DEFINITION,
        "tenant_id": str(tenant_id),
        "sequence": sequence,
        "hash": hash.hex(),
        "signed_at": format_timestamp(signed_at),
    }


def format_timestamp(moment: datetime) -> str:
    """Return the time in UTC with microseconds, for example 2026-11-21T22:09:00.000000Z."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def normalize_ip(text: str | None) -> str | None:
    """Return the IP address in its canonical spelling. Raises ValueError.

    An IPv4-mapped IPv6 address becomes an IPv4 address. A zone ("%eth0") is left out.
    """
    if text is None:
        return None
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)

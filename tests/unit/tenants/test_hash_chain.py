"""The hash of an audit entry depends on all of its content, and on the entry before it."""

from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import pytest

from tenants.models import AuditEntry
from tenants.security.audit.hash_chain import (
    GENESIS,
    AuditEntryFields,
    build_document,
    hash_document,
)
from tenants.security.audit.queries import ChainHead
from tenants.security.audit.signed_heads import ChainBroken, require_unbroken_chain

FIELDS: Final[dict[str, Any]] = {
    "tenant_id": UUID(int=1),
    "sequence": 1,
    "previous_hash": GENESIS,
    "id": UUID(int=2),
    "at": datetime(2026, 11, 1, tzinfo=UTC),
    "actor_kind": "user",
    "actor_id": UUID(int=3),
    "actor_key": "",
    "action": "key.created",
    "target": "key:4",
    "before": None,
    "after": None,
    "address": None,
    "request_id": "",
    "reason": "",
}
# For each field, a value that differs from that in FIELDS.
OTHERS: Final[dict[str, Any]] = {
    "tenant_id": UUID(int=9),
    "sequence": 2,
    "previous_hash": bytes([1]) * 32,
    "id": UUID(int=9),
    "at": datetime(2026, 11, 1, microsecond=1, tzinfo=UTC),
    "actor_kind": "operator",
    "actor_id": None,
    "actor_key": "developer",
    "action": "key.revoked",
    "target": "key:5",
    "before": {"name": "laptop"},
    "after": {"name": "laptop"},
    "address": "192.0.2.7",
    "request_id": "r",
    "reason": "Leaked.",
}


def make_entry(**changes: Any) -> AuditEntry:
    """Return an unsaved entry with the hash of its content."""
    entry = AuditEntry(**{**FIELDS, **changes})
    entry.hash = hash_document(build_document(entry))
    return entry


def make_chain(*reasons: str) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    for sequence, reason in enumerate(reasons, start=1):
        previous = entries[-1].hash if entries else GENESIS
        entries.append(make_entry(sequence=sequence, previous_hash=previous, reason=reason))
    return entries


@pytest.mark.parametrize("field", AuditEntryFields.__annotations__)
def test_the_hash_covers_every_field_of_an_entry(field: str) -> None:
    assert make_entry(**{field: OTHERS[field]}).hash != make_entry().hash


def test_a_rewritten_entry_with_a_new_hash_breaks_the_chain_at_the_next_entry() -> None:
    entries = make_chain("a", "b", "c")
    begins, ends = ChainHead(0, GENESIS), ChainHead(3, bytes(entries[-1].hash))
    require_unbroken_chain(entries, begins=begins, ends=ends)

    entries[1] = make_entry(sequence=2, previous_hash=entries[0].hash, reason="rewritten")

    with pytest.raises(ChainBroken) as broken:
        require_unbroken_chain(entries, begins=begins, ends=ends)
    assert broken.value.sequence == 3

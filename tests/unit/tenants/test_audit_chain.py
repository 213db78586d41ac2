"""The hash of an audit entry depends on all that the entry says."""

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tenants.audit.chain import GENESIS, document_of, hash_of


@dataclass(frozen=True)
class Recorded:
    tenant_id: Any
    sequence: int
    previous_hash: Any
    id: UUID
    at: datetime
    actor_kind: str
    actor_id: Any
    actor_key: str
    action: str
    target: str
    before: Any = None
    after: Any = None
    address: str | None = None
    request_id: str = ""
    reason: str = ""


ENTRY = Recorded(
    tenant_id=UUID(int=1),
    sequence=1,
    previous_hash=GENESIS,
    id=UUID(int=2),
    at=datetime(2026, 11, 1, tzinfo=UTC),
    actor_kind="user",
    actor_id=UUID(int=3),
    actor_key="",
    action="key.created",
    target="key:4",
)
CHANGES: dict[str, Any] = {
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


@pytest.mark.parametrize("field", [field.name for field in fields(Recorded)])
def test_every_field_of_an_entry_changes_its_hash(field: str) -> None:
    changed = replace(ENTRY, **{field: CHANGES[field]})

    assert hash_of(document_of(changed)) != hash_of(document_of(ENTRY))

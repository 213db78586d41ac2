"""Opens what was sealed, and shows what can no longer be opened. For other queries and operations:
these ask no role."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from caret.foundation.crypto.aead import SealBroken
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant
from tenants.models import DataKey
from tenants.security.encryption.envelope import Place, data_key_id, opens_witness, unseal_at
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.key_unwrapping import data_key_of
from tenants.security.encryption.scopes import within


@dataclass(frozen=True, slots=True)
class KeyEvidence:
    """What is left of a data key, and whether something that it has sealed was opened just now."""

    key_id: UUID
    scope: str
    fingerprint: str  # hex
    created_at: datetime
    destroyed_at: datetime | None  # None: it is in use
    opens: bool


def open_sealed(tenant_id: TenantId, *, place: Place, sealed: bytes) -> bytes:
    """What seal_for was given. The key's row is read each time, so what was shredded in any process
    opens in none. One query.

    Raises SealBroken for what was changed, moved, or is another tenant's; KeyDestroyed,
    RootKeyMissing, RootKeyUnavailable.
    """
    key_id = data_key_id(sealed)
    with tenant(tenant_id):
        try:
            row = DataKey.objects.get(tenant_id=tenant_id, id=key_id)
        except DataKey.DoesNotExist as error:
            raise SealBroken from error
        key = data_key_of(row)
    return unseal_at(place, sealed, tenant_id=tenant_id, key=key)


def find_evidence(*, tenant_id: TenantId, scope: str | None = None) -> list[KeyEvidence]:
    """Of all keys that the scope and those below it have had, by age; of the whole tenant for None.
    Tries to open each key's witness: for a deletion certificate. Raises RootKeyMissing,
    RootKeyUnavailable."""
    with tenant(tenant_id):
        keys = DataKey.objects.filter(tenant_id=tenant_id).order_by("created_at", "id")
        rows = keys if scope is None else keys.filter(within(scope))
        return [_evidence(row) for row in rows]


def _evidence(row: DataKey) -> KeyEvidence:
    return KeyEvidence(
        key_id=row.id,
        scope=row.scope,
        fingerprint=bytes(row.fingerprint).hex(),
        created_at=row.created_at,
        destroyed_at=row.destroyed_at,
        opens=_opens(row),
    )


def _opens(row: DataKey) -> bool:
    try:
        return opens_witness(data_key_of(row), bytes(row.witness), row.id)
    except (KeyDestroyed, SealBroken):
        return False

"""Operations that seal data and destroy keys, for other operations.

They check no permission and write no audit entry; the callers do.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import DataKey, TenantKey
from tenants.security.encryption.destroyed_keys import write_key_tombstones_on_commit
from tenants.security.encryption.envelope import SealContext, seal_at
from tenants.security.encryption.key_cache import key_cache
from tenants.security.encryption.key_creation import get_or_create_data_key
from tenants.security.encryption.key_unwrapping import unwrap_stored_data_key
from tenants.security.encryption.queries import make_scope_condition


@dataclass(frozen=True, slots=True)
class DestroyedKey:
    """A destroyed key, for an audit entry or a deletion certificate."""

    key_id: UUID
    fingerprint: str  # hex
    scope: str | None  # None: the tenant key


def seal_in_scope(
    tenant_id: TenantId, scope: str, *, context: SealContext, data: bytes, now: datetime
) -> bytes:
    """Seal data for a tenant and a scope.

    queries.open_sealed opens the data with the same `context`, until the scope or the tenant is
    shredded. Data that is erased together has the same scope, such as `user:<id>/content` or
    `export:<id>`. Data that is sealed while its scope is being shredded may be sealed with the
    destroyed key, and can then never be opened. One query if the scope has a data key and the
    tenant key is cached.

    Raises KeyDestroyed, RootKeyMissing, RootKeyUnavailable, and DecryptionFailed for a damaged key.
    """
    with tenant_scope(tenant_id):
        row = get_or_create_data_key(tenant_id=tenant_id, scope=scope, now=now)
        key = unwrap_stored_data_key(row)
    return seal_at(context, data, tenant_id=tenant_id, key_id=row.id, key=key)


def shred_scope(*, tenant_id: TenantId, scope: str, now: datetime) -> list[DestroyedKey]:
    """Destroy the data keys of a scope and of the scopes below it.

    `user:<id>/content` is below `user:<id>`. After the commit, nothing that was sealed in these
    scopes can be opened. Data that is sealed later gets a new key.
    """
    with tenant_scope(tenant_id):
        shredded = _shred_keys(
            DataKey.objects.filter(make_scope_condition(scope), tenant_id=tenant_id), now
        )
        write_key_tombstones_on_commit(tenant_id, [key.key_id for key in shredded])
    return shredded


def shred_tenant(*, tenant_id: TenantId, now: datetime) -> list[DestroyedKey]:
    """Destroy all keys of a tenant. Its data can never be opened, and new data cannot be sealed."""
    with tenant_scope(tenant_id):
        # Lock tenant keys first. A concurrent transaction has then either committed its new data
        # key, which is shredded below, or finds no tenant key to wrap the data key.
        shredded_tenant_keys = _shred_tenant_keys(tenant_id, now)
        shredded_data_keys = _shred_keys(DataKey.objects.filter(tenant_id=tenant_id), now)
        shredded = shredded_data_keys + shredded_tenant_keys
        write_key_tombstones_on_commit(tenant_id, [key.key_id for key in shredded])
    return shredded


def _shred_tenant_keys(tenant_id: TenantId, now: datetime) -> list[DestroyedKey]:
    shredded = []
    tenant_keys = TenantKey.objects.filter(tenant_id=tenant_id, destroyed_at=None)
    # Repeat the query: while it waits for a lock, rotation can create a key that the query does not
    # see.
    while rows := list(tenant_keys.select_for_update().order_by("id")):
        for row in rows:
            TenantKey.objects.filter(tenant_id=tenant_id, id=row.id).update(
                wrapped=None, destroyed_at=now, retired_at=row.retired_at or now
            )
            key_cache.remove(row.id)
            shredded.append(DestroyedKey(row.id, bytes(row.fingerprint).hex(), scope=None))
    return shredded


def _shred_keys(keys: QuerySet[DataKey], now: datetime) -> list[DestroyedKey]:
    rows = list(keys.filter(destroyed_at=None).select_for_update().order_by("id"))
    keys.filter(id__in=[row.id for row in rows]).update(wrapped=None, destroyed_at=now)
    return [DestroyedKey(row.id, bytes(row.fingerprint).hex(), row.scope) for row in rows]

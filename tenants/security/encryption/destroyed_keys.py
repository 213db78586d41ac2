"""Tombstones of destroyed keys, stored outside the database (tenants.base.tombstones).

A restored backup could bring back encryption keys that were destroyed after the backup was made.
The tombstones say which keys must be destroyed again.

    <tenant ID>/<key ID>     one for each key

Only shredded keys get a tombstone. A tenant key that rotation replaced gets none, because all data
in a backup from before the rotation needs this key.
"""

import uuid
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import tombstones
from tenants.models import DataKey, TenantKey
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import list_tenants
from tenants.security.encryption.key_cache import key_cache


def write_key_tombstones_on_commit(tenant_id: TenantId, key_ids: Iterable[UUID]) -> None:
    """Write tombstones after the commit. Call this in the transaction that destroys the keys."""
    tombstones.write_tombstones_on_commit(tenant_id, map(str, key_ids))


def write_missing_key_tombstones(*, now: datetime) -> int:
    """Write the missing tombstones of all tenants, and return how many were missing.

    Covers the keys that were destroyed in the last `tombstones.LOOKBACK`. Raises the exceptions
    of the storage.
    """
    num_written = 0
    for tenant_id in list_tenants().values():
        with tenant_scope(tenant_id):
            ids = _list_shredded(tenant_id, since=now - tombstones.LOOKBACK)
        num_written += tombstones.write_tombstones(tenant_id, map(str, ids))
    return num_written


def _list_shredded(tenant_id: TenantId, *, since: datetime) -> list[UUID]:
    recent = {"tenant_id": tenant_id, "destroyed_at__gte": since}
    ids = list(DataKey.objects.filter(**recent).values_list("id", flat=True))
    # While the tenant still has a tenant key, only rotation has destroyed tenant keys.
    if not TenantKey.objects.filter(tenant_id=tenant_id, destroyed_at=None).exists():
        ids += TenantKey.objects.filter(**recent).values_list("id", flat=True)
    return ids


def replay_destruction(*, now: datetime) -> int:
    """Destroy again the keys that a restore brought back, and return how many there were.

    Call this after a restore, before any process starts. A second call finds none. Raises
    WrongStore, and the exceptions of the storage.
    """
    tombstones.require_store()
    return sum(_destroy_again(tenant_id, now) for tenant_id in list_tenants().values())


def _destroy_again(tenant_id: TenantId, now: datetime) -> int:
    ids = [uuid.UUID(name) for name in tombstones.list_tombstones(tenant_id) if _is_id(name)]
    restored_key_filter = {"tenant_id": tenant_id, "id__in": ids, "destroyed_at": None}
    with tenant_scope(tenant_id):
        num_keys = DataKey.objects.filter(**restored_key_filter).update(
            wrapped=None, destroyed_at=now
        )
        num_keys += TenantKey.objects.filter(**restored_key_filter).update(
            wrapped=None, destroyed_at=now, retired_at=Coalesce(F("retired_at"), now)
        )
        if num_keys:
            record_change(
                actor=build_system_actor(tenant_id),
                action="keys.destroyed_again",
                target="keys",
                change=(None, {"keys": num_keys}),
                reason="A backup had brought them back.",
                now=now,
            )
    for key_id in ids:
        key_cache.remove(key_id)
    return num_keys


def _is_id(name: str) -> bool:
    """Return whether the name of a tombstone is a key's ID. Erasures have other names."""
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False

"""Rotation of root keys and tenant keys without downtime: keys are rewrapped, data stays sealed.

Each step is a short transaction that can be repeated. After a crash, the next run continues. A key
that was rewrapped or shredded meanwhile is not changed.

    root key      the operator adds a new root key to CARET_ROOT_KEYS of all processes, and then
                  puts it first; rotation then rewraps all tenant keys with it
    tenant key    rotation retires the old key, puts a new one in force, rewraps all data keys with
                  the new one, and destroys the old one
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import transaction

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import DataKey, RootKeyUse, Tenant, TenantKey
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import build_system_actor
from tenants.security.encryption.envelope import (
    build_data_key_context,
    build_tenant_key_context,
    wrap_data_key,
)
from tenants.security.encryption.key_cache import key_cache
from tenants.security.encryption.key_creation import create_tenant_key
from tenants.security.encryption.key_unwrapping import (
    unwrap_stored_data_key,
    unwrap_stored_tenant_key,
)
from tenants.security.encryption.root_keys import load_root_keys
from tenants.security.encryption.startup_check import record_root_key_use

BATCH: Final = 200  # data keys in one transaction


@dataclass(frozen=True, slots=True)
class RotationResult:
    tenant_keys: int = 0  # rewrapped with the current root key
    new_tenant_keys: int = 0  # 0 or 1
    data_keys: int = 0  # rewrapped with the tenant key in force


def rotate_tenant_keys(
    *, tenant_id: TenantId, now: datetime, older_than: datetime | None = None
) -> RotationResult:
    """Replace the tenant key if it was created before `older_than`; None: do not replace it.

    Then rewrap the tenant keys that an old root key wraps, and the data keys that a retired tenant
    key wraps, including those that an interrupted rotation has left. Raises DecryptionFailed,
    RootKeyMissing, RootKeyUnavailable.
    """
    is_replaced = older_than is not None and _replace_tenant_key(tenant_id, now, older_than)
    num_tenant_keys = _rewrap_tenant_keys(tenant_id, now)
    num_data_keys = 0
    while num := _rewrap_data_key_batch(tenant_id):
        num_data_keys += num
    _destroy_unused_tenant_keys(tenant_id, now)
    return RotationResult(
        tenant_keys=num_tenant_keys, new_tenant_keys=int(is_replaced), data_keys=num_data_keys
    )


def retire_root_keys(*, now: datetime) -> list[str]:
    """Retire the root keys that wrap no tenant key any more, and return their IDs.

    The operator can remove retired keys from CARET_ROOT_KEYS. The current root key is never
    retired, because it wraps the next tenant key. Raises BadSetting, RootKeyUnavailable.
    """
    retired = []
    in_use = RootKeyUse.objects.filter(retired_at=None).exclude(id=load_root_keys().current.id)
    for root_key_id in in_use.values_list("id", flat=True):
        with transaction.atomic():
            # A concurrent transaction that wraps with this root key waits for the lock. It then
            # puts the root key in use again (record_root_key_use).
            RootKeyUse.objects.select_for_update().get(id=root_key_id)
            if not _is_used(root_key_id):
                RootKeyUse.objects.filter(id=root_key_id).update(retired_at=now)
                retired.append(root_key_id)
    return retired


def _replace_tenant_key(tenant_id: TenantId, now: datetime, older_than: datetime) -> bool:
    """Put a new tenant key in force if the present one is old; return whether this was done."""
    with tenant_scope(tenant_id):
        old_keys = TenantKey.objects.filter(
            tenant_id=tenant_id, retired_at=None, created_at__lt=older_than
        )
        if not old_keys.exists():
            return False
        current = load_root_keys().current
        # Lock order: root keys before tenant keys.
        record_root_key_use(current, now=now)
        old_key = old_keys.select_for_update().first()
        if old_key is None:  # another transaction replaced or shredded it meanwhile
            return False
        TenantKey.objects.filter(tenant_id=tenant_id, id=old_key.id).update(retired_at=now)
        new_key = create_tenant_key(tenant_id=tenant_id, root_key=current, now=now)
        record_change(
            actor=build_system_actor(tenant_id),
            action="encryption.tenant_key_replaced",
            target=f"tenant-key:{new_key.id}",
            change=({"tenant_key": str(old_key.id)}, {"tenant_key": str(new_key.id)}),
            now=now,
        )
    return True


def _rewrap_tenant_keys(tenant_id: TenantId, now: datetime) -> int:
    current = load_root_keys().current
    with tenant_scope(tenant_id):
        rows = TenantKey.objects.filter(tenant_id=tenant_id, destroyed_at=None)
        old = rows.exclude(root_key_id=current.id).order_by("created_at", "id")
        return sum(_rewrap_tenant_key(row, now) for row in old)


def _rewrap_tenant_key(row: TenantKey, now: datetime) -> bool:
    current, tenant_id = load_root_keys().current, TenantId(str(row.tenant_id))
    record_root_key_use(current, now=now)
    bound_to = build_tenant_key_context(tenant_id, row.id)
    num_changed = TenantKey.objects.filter(
        tenant_id=tenant_id, id=row.id, root_key_id=row.root_key_id, destroyed_at=None
    ).update(
        wrapped=current.wrap(unwrap_stored_tenant_key(row), bound_to=bound_to),
        root_key_id=current.id,
    )
    if num_changed:
        record_change(
            actor=build_system_actor(tenant_id),
            action="encryption.tenant_key_rewrapped",
            target=f"tenant-key:{row.id}",
            change=({"root_key": row.root_key_id}, {"root_key": current.id}),
            now=now,
        )
    return bool(num_changed)


def _rewrap_data_key_batch(tenant_id: TenantId) -> int:
    """Rewrap up to BATCH data keys, and return how many.

    0: no data key needs rewrapping, or all keys of the tenant are shredded.
    """
    with tenant_scope(tenant_id):
        keys = TenantKey.objects.filter(tenant_id=tenant_id, destroyed_at=None)
        retired = list(keys.exclude(retired_at=None).values_list("id", flat=True))
        # Lock order: tenant keys before data keys.
        current_key = keys.filter(retired_at=None).select_for_update(no_key=True).first()
        if current_key is None or not retired:
            return 0
        rows = DataKey.objects.filter(
            tenant_id=tenant_id, tenant_key_id__in=retired, destroyed_at=None
        )
        batch = list(rows.select_for_update(no_key=True).order_by("id")[:BATCH])
        for row in batch:
            _rewrap_data_key(row, current_key)
        return len(batch)


def _rewrap_data_key(row: DataKey, in_force: TenantKey) -> None:
    """Rewrap a data key with the tenant key in force. Both rows must be locked."""
    bound_to = build_data_key_context(
        TenantId(str(row.tenant_id)), scope=row.scope, key_id=row.id, tenant_key_id=in_force.id
    )
    wrapped = wrap_data_key(
        unwrap_stored_data_key(row),
        tenant_key=unwrap_stored_tenant_key(in_force),
        bound_to=bound_to,
    )
    DataKey.objects.filter(tenant_id=row.tenant_id, id=row.id).update(
        wrapped=wrapped, tenant_key_id=in_force.id
    )


def _destroy_unused_tenant_keys(tenant_id: TenantId, now: datetime) -> None:
    """Destroy retired tenant keys that wrap no data key any more."""
    with tenant_scope(tenant_id):
        keys = TenantKey.objects.filter(tenant_id=tenant_id, destroyed_at=None)
        for row in keys.exclude(retired_at=None).select_for_update().order_by("id"):
            # The row is locked, so all transactions that wrapped a data key with it have finished.
            if not DataKey.objects.filter(
                tenant_id=tenant_id, tenant_key_id=row.id, destroyed_at=None
            ).exists():
                keys.filter(id=row.id).update(wrapped=None, destroyed_at=now)
                key_cache.remove(row.id)


def _is_used(root_key_id: str) -> bool:
    ids = Tenant.objects.values_list("id", flat=True)
    return any(_is_used_by(TenantId(str(tenant_id)), root_key_id) for tenant_id in ids.iterator())


def _is_used_by(tenant_id: TenantId, root_key_id: str) -> bool:
    with tenant_scope(tenant_id):
        return TenantKey.objects.filter(
            tenant_id=tenant_id, root_key_id=root_key_id, destroyed_at=None
        ).exists()

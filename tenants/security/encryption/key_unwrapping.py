"""Unwrapping of stored tenant keys and data keys.

Other modules unwrap stored keys only with these functions.
"""

from uuid import UUID

from caret.foundation.ids import TenantId
from tenants.models import DataKey, TenantKey
from tenants.security.encryption.envelope import (
    build_data_key_context,
    build_tenant_key_context,
    unwrap_data_key,
)
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.key_cache import key_cache
from tenants.security.encryption.root_keys import load_root_keys


def unwrap_stored_data_key(row: DataKey) -> bytes:
    """Unwrap a data key. One query if the tenant key is not cached.

    Must run inside the tenant's scope. After `row` was read, rotation may have wrapped the data key
    again and destroyed the tenant key that `row` names. The row is then read again.

    Raises KeyDestroyed, DecryptionFailed, RootKeyMissing, RootKeyUnavailable.
    """
    while True:
        try:
            return _unwrap_key(row)
        except KeyDestroyed:
            present = DataKey.objects.get(tenant_id=row.tenant_id, id=row.id)
            if present.tenant_key_id == row.tenant_key_id:
                raise
            row = present


def _unwrap_key(row: DataKey) -> bytes:
    """Unwrap a data key with the tenant key that the row names.

    Raises KeyDestroyed and the other errors of unwrap_stored_data_key.
    """
    if row.wrapped is None:
        raise KeyDestroyed("The key was destroyed.")
    tenant_id = TenantId(str(row.tenant_id))
    bound_to = build_data_key_context(
        tenant_id, scope=row.scope, key_id=row.id, tenant_key_id=row.tenant_key_id
    )
    tenant_key = _get_or_unwrap_tenant_key(tenant_id, row.tenant_key_id)
    return unwrap_data_key(bytes(row.wrapped), tenant_key=tenant_key, bound_to=bound_to)


def unwrap_stored_tenant_key(row: TenantKey) -> bytes:
    """Return the unwrapped tenant key; it is cached for `key_cache.HOLD_S`.

    Raises KeyDestroyed, DecryptionFailed, RootKeyMissing, RootKeyUnavailable.
    """
    if row.wrapped is None:
        key_cache.remove(row.id)
        raise KeyDestroyed("The tenant's key was destroyed.")
    if (cached_key := key_cache.get(row.id)) is not None:
        return cached_key
    bound_to = build_tenant_key_context(TenantId(str(row.tenant_id)), row.id)
    key = load_root_keys().get(row.root_key_id).unwrap(bytes(row.wrapped), bound_to=bound_to)
    key_cache.set(row.id, key)
    return key


def _get_or_unwrap_tenant_key(tenant_id: TenantId, key_id: UUID) -> bytes:
    if (cached_key := key_cache.get(key_id)) is not None:
        return cached_key
    return unwrap_stored_tenant_key(TenantKey.objects.get(tenant_id=tenant_id, id=key_id))

"""Creation of encryption keys: tenant keys, and a data key for a scope that has none.

If two transactions create the same key at once, the second uses the key that the first has created.
"""

import uuid
from datetime import datetime

from django.db import IntegrityError, transaction

from caret.foundation.ids import TenantId
from tenants.models import DataKey, TenantKey
from tenants.security.encryption.envelope import (
    build_data_key_context,
    build_tenant_key_context,
    compute_key_fingerprint,
    create_canary,
    generate_key,
    wrap_data_key,
)
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.key_unwrapping import unwrap_stored_tenant_key
from tenants.security.encryption.root_keys import RootKey, load_root_keys
from tenants.security.encryption.startup_check import record_root_key_use


def get_or_create_data_key(*, tenant_id: TenantId, scope: str, now: datetime) -> DataKey:
    """Return the data key of the scope `scope`; create it if it is missing.

    Must run inside the tenant's scope (tenant_scope). One query if the key exists. Raises
    RootKeyMissing, RootKeyUnavailable, DecryptionFailed for a damaged tenant key, and KeyDestroyed
    if all keys of the tenant are shredded.
    """
    in_force = DataKey.objects.filter(tenant_id=tenant_id, scope=scope, destroyed_at=None)
    if (data_key := in_force.order_by("id").first()) is not None:
        return data_key
    tenant_key = _lock_tenant_key(tenant_id, now)
    try:
        with transaction.atomic():
            return _make_data_key(tenant_key, scope, now)
    except IntegrityError:
        return in_force.get()  # another transaction has created it meanwhile


def create_tenant_key(*, tenant_id: TenantId, root_key: RootKey, now: datetime) -> TenantKey:
    """Create a tenant key. Must run inside the tenant's scope.

    Raises RootKeyUnavailable, and django.db.IntegrityError if one is in force already.
    """
    key_id, key = uuid.uuid4(), generate_key()
    record_root_key_use(root_key, now=now)
    return TenantKey.objects.create(
        tenant_id=tenant_id,
        id=key_id,
        root_key_id=root_key.id,
        wrapped=root_key.wrap(key, bound_to=build_tenant_key_context(tenant_id, key_id)),
        fingerprint=compute_key_fingerprint(key),
        created_at=now,
    )


def _lock_tenant_key(tenant_id: TenantId, now: datetime) -> TenantKey:
    """Lock and return the tenant key in force; create it for a tenant that never had a key.

    Until the commit, rotation cannot retire or destroy the key, so the caller can wrap a data key
    with it. Raises KeyDestroyed, RootKeyUnavailable.
    """
    keys = TenantKey.objects.filter(tenant_id=tenant_id)
    in_force = keys.filter(retired_at=None).select_for_update(no_key=True)
    if (tenant_key := in_force.first()) is not None:
        return tenant_key
    if not keys.exists():
        try:
            with transaction.atomic():
                return create_tenant_key(
                    tenant_id=tenant_id, root_key=load_root_keys().current, now=now
                )
        except IntegrityError:
            pass  # another transaction has created it meanwhile
    # The first query has found no key in force, for one of these reasons:
    # - another transaction was creating the first key;
    # - rotation replaced the key while we waited for its lock; this can happen again below;
    # - all keys of the tenant are shredded. Then the loop does not run.
    while keys.filter(retired_at=None).exists():
        if (tenant_key := in_force.first()) is not None:
            return tenant_key
    raise KeyDestroyed("The tenant's keys were destroyed, and it gets no new ones.")


def _make_data_key(tenant_key: TenantKey, scope: str, now: datetime) -> DataKey:
    tenant_id, key_id, key = TenantId(str(tenant_key.tenant_id)), uuid.uuid4(), generate_key()
    bound_to = build_data_key_context(
        tenant_id, scope=scope, key_id=key_id, tenant_key_id=tenant_key.id
    )
    return DataKey.objects.create(
        tenant_id=tenant_id,
        id=key_id,
        tenant_key_id=tenant_key.id,
        scope=scope,
        wrapped=wrap_data_key(
            key, tenant_key=unwrap_stored_tenant_key(tenant_key), bound_to=bound_to
        ),
        fingerprint=compute_key_fingerprint(key),
        canary=create_canary(key, key_id),
        created_at=now,
    )

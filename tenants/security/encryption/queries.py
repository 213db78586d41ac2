"""Queries that open sealed data, or prove that keys are destroyed, for other domains.

They check no permission.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import DataKey
from tenants.security.encryption.envelope import (
    SealContext,
    can_open_canary,
    read_data_key_id,
    unseal_at,
)
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.key_unwrapping import unwrap_stored_data_key


@dataclass(frozen=True, slots=True)
class KeyDestructionProof:
    """A data key without its secret, and whether the key can still open its canary."""

    key_id: UUID
    scope: str
    fingerprint: str  # hex
    created_at: datetime
    destroyed_at: datetime | None  # None: not destroyed
    opens: bool  # the key opens its canary; False: it opens no data any more


def open_sealed(tenant_id: TenantId, *, context: SealContext, envelope: bytes) -> bytes:
    """Open data that seal_in_scope has sealed. One query if the tenant key is cached, else two.

    The data key's row is read each time, so a key that another process has shredded opens nothing.

    Raises KeyDestroyed, RootKeyMissing, RootKeyUnavailable, and DecryptionFailed for data that was
    changed, was moved or belongs to another tenant.
    """
    key_id = read_data_key_id(envelope)
    with tenant_scope(tenant_id):
        try:
            row = DataKey.objects.get(tenant_id=tenant_id, id=key_id)
        except DataKey.DoesNotExist as error:
            raise DecryptionFailed from error
        key = unwrap_stored_data_key(row)
    return unseal_at(context, envelope, tenant_id=tenant_id, key=key)


def find_destruction_proofs(
    *, tenant_id: TenantId, scope: str | None = None
) -> list[KeyDestructionProof]:
    """Try to open each data key's canary, and return the results, oldest key first.

    Covers all past and present data keys of the scope and of the scopes below it; `scope` None: of
    the tenant. The results are for a deletion certificate. Raises RootKeyMissing,
    RootKeyUnavailable.
    """
    with tenant_scope(tenant_id):
        keys = DataKey.objects.filter(tenant_id=tenant_id).order_by("created_at", "id")
        rows = keys if scope is None else keys.filter(make_scope_condition(scope))
        return [_to_destruction_proof(row) for row in rows]


def _to_destruction_proof(row: DataKey) -> KeyDestructionProof:
    return KeyDestructionProof(
        key_id=row.id,
        scope=row.scope,
        fingerprint=bytes(row.fingerprint).hex(),
        created_at=row.created_at,
        destroyed_at=row.destroyed_at,
        opens=_can_open(row),
    )


def _can_open(row: DataKey) -> bool:
    try:
        return can_open_canary(unwrap_stored_data_key(row), bytes(row.canary), row.id)
    except (KeyDestroyed, DecryptionFailed):
        return False


def make_scope_condition(scope: str) -> Q:
    """Return the filter for the data keys of a scope and of those below it.

    A scope `a/b` is shredded with its parent `a`, or alone.
    """
    return Q(scope=scope) | Q(scope__startswith=f"{scope}/")

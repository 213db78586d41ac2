"""Storage of the content of a user who consented, encrypted with the user's own key.

1. Lock the tenant's row, check consent, seal the content, and write the object's row. Content that
   was captured before both user and tenant consented is left out.
2. Store the object, outside any transaction.
3. Mark the row as stored. If its erasure was requested meanwhile, delete the object.

If the worker is killed between two steps, the row is not marked as stored. After an hour, the
clean-up (erasure.clean_up_content) erases the object and the row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from caret.contracts.captured_content import Item
from caret.contracts.snapshot import TenantStatus
from caret.foundation.clock import from_unix_ms
from caret.foundation.ids import TenantId, UserId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import ContentObject, Tenant
from tenants.policy.queries import load_active_policy
from tenants.privacy.consent.queries import find_active_consent
from tenants.privacy.content_capture import object_store
from tenants.privacy.content_capture.erasure import build_key_scope
from tenants.security.encryption.operations import seal_in_scope


@dataclass(frozen=True, slots=True)
class _SealedObject:
    object_id: UUID
    data: bytes
    num_items: int


def store_content(
    *, tenant_id: TenantId, user_id: UserId, items: Sequence[Item], now: datetime
) -> int:
    """Store content, and return how many items were stored.

    Nothing is stored without consent, or for a tenant that is not active. Items that are older than
    the consent are not stored, either.

    Raises KeyDestroyed, RootKeyMissing, RootKeyUnavailable, DecryptionFailed for a damaged
    encryption key, and the exceptions of the storage.
    """
    sealed_object = _seal_items(tenant_id, user_id, items, now)
    if sealed_object is None:
        return 0
    object_store.store_object(tenant_id, sealed_object.object_id, sealed_object.data)
    with tenant_scope(tenant_id):
        is_stored = ContentObject.objects.filter(
            tenant_id=tenant_id, id=sealed_object.object_id, erasure_id=None
        ).update(stored_at=now)
    if not is_stored:
        object_store.delete_object(tenant_id, sealed_object.object_id)
    return sealed_object.num_items if is_stored else 0


def _seal_items(
    tenant_id: TenantId, user_id: UserId, items: Sequence[Item], now: datetime
) -> _SealedObject | None:
    object_id = uuid7()
    with tenant_scope(tenant_id):
        # A transaction that ends consent waits for this lock, and then finds the new ContentObject.
        row = Tenant.objects.select_for_update(no_key=True).filter(id=tenant_id).first()
        if row is None or row.status != TenantStatus.ACTIVE:
            return None
        policy = load_active_policy(tenant_id=tenant_id)
        active_consent = find_active_consent(tenant_id=tenant_id, user_id=user_id, policy=policy)
        if active_consent is None:
            return None
        consented_items = _select_since(items, active_consent.content_capture_since)
        if not consented_items:
            return None
        data = b"".join(msgspec.json.encode(item) + b"\n" for item in consented_items)
        envelope = seal_in_scope(
            tenant_id,
            build_key_scope(user_id),
            context=object_store.build_seal_context(object_id),
            data=data,
            now=now,
        )
        training_items = _select_since(consented_items, active_consent.training_since)
        ContentObject.objects.create(
            tenant_id=tenant_id,
            id=object_id,
            user_id=user_id,
            request_ids=sorted({item.request_id for item in consented_items}),
            num_items=len(consented_items),
            num_bytes=len(envelope),
            # An object is for training as a whole or not at all. If one of its items is older than
            # the consent to training, its newer items are not used either. This loses only the
            # first seconds of content after a consent.
            is_for_training=len(training_items) == len(consented_items),
            created_at=now,
        )
    return _SealedObject(object_id, envelope, len(consented_items))


def _select_since(items: Sequence[Item], moment: datetime | None) -> list[Item]:
    """Return the items captured since `moment`, by the gateway's clock; None: no items."""
    if moment is None:
        return []
    return [item for item in items if from_unix_ms(item.occurred_at_ms) >= moment]

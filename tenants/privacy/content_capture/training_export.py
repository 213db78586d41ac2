"""The training data set: content captured with consent to training that is still in force."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from caret.contracts.captured_content import Item
from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import ContentObject
from tenants.policy.queries import load_active_policy
from tenants.privacy.consent.queries import find_all_effective_consents
from tenants.privacy.content_capture import object_store
from tenants.security.audit.operations import record_read
from tenants.security.authorization.actor import Actor
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.queries import open_sealed

_PAGE: Final = 100  # objects
_decode = msgspec.json.Decoder(Item).decode


def export_training_data(*, actor: Actor, now: datetime) -> Iterator[bytes]:
    """Yield a line of JSON for each captured item, oldest objects first, without user IDs.

    Memory use does not grow with the export. Consent is checked again for every _PAGE objects.
    Objects that were erased in the meantime, or changed in the store, are left out. The export is
    recorded in the tenant's audit log before the first line.

    Raises Forbidden, RootKeyMissing, RootKeyUnavailable, and the exceptions of the storage.
    """
    actor.require_platform()
    with tenant_scope(actor.tenant_id):
        record_read(actor=actor, action="training_data.exported", target="training", now=now)
    last: UUID | None = None
    while page := _fetch_page(actor.tenant_id, after=last):
        for object_id in page:
            yield from _read_lines(actor.tenant_id, object_id)
        last = page[-1]


def _fetch_page(tenant_id: TenantId, *, after: UUID | None) -> list[UUID]:
    with tenant_scope(tenant_id):
        policy = load_active_policy(tenant_id=tenant_id)
        consents = find_all_effective_consents(tenant_id=tenant_id, policy=policy).items()
        rows = ContentObject.objects.filter(
            tenant_id=tenant_id,
            user_id__in=[user_id for user_id, consent in consents if consent.training],
            is_for_training=True,
            stored_at__isnull=False,
            erasure_id=None,
        )
        remaining_rows = rows if after is None else rows.filter(id__gt=after)
        return list(remaining_rows.order_by("id").values_list("id", flat=True)[:_PAGE])


def _read_lines(tenant_id: TenantId, object_id: UUID) -> Iterator[bytes]:
    try:
        envelope = object_store.read_object(tenant_id, object_id)
        data = open_sealed(
            tenant_id, context=object_store.build_seal_context(object_id), envelope=envelope
        )
    except (FileNotFoundError, KeyDestroyed, DecryptionFailed):
        return  # erased since the page was read, or modified in the store
    for line in data.splitlines():
        document = msgspec.to_builtins(_decode(line))
        del document["user_id"]
        yield msgspec.json.encode(document) + b"\n"

"""Which keys were destroyed, noted where no backup of the database is: a backup of the keys that is
older than that would bring them back.

    CARET_DESTROYED_KEYS_STORE/<tenant>/<key>      an empty object for each, never deleted

Shredded keys only. A tenant's key that another one has replaced is not noted: in a backup of before
it is the one that opens all.

It is written once a destruction is committed; what was missed then (the store was away, the process
was killed) is written by `note_missed`, which runs every hour.
"""

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenancy import tenant
from tenants.audit.operations import record_change
from tenants.encryption.held import held_keys
from tenants.members.actor import platform_actor
from tenants.members.queries import list_tenants
from tenants.models import DataKey, TenantKey

STORAGE: Final = "destroyed_keys"
# A store that is away for longer is noticed: each run of the task fails.
LOOKS_BACK: Final = timedelta(days=14)


def note_once_committed(tenant_id: TenantId, key_ids: Iterable[UUID]) -> None:
    """Call in the transaction that destroys them. That the store is away does not undo it."""
    ids = list(key_ids)
    if ids:
        transaction.on_commit(lambda: _note(tenant_id, ids), robust=True)


def note_missed(*, now: datetime) -> int:
    """How many were missing, of all tenants. Raises what the storage raises."""
    num_noted = 0
    for tenant_id in list_tenants().values():
        with tenant(tenant_id):
            ids = _shredded(tenant_id, since=now - LOOKS_BACK)
        num_noted += _note(tenant_id, ids)
    return num_noted


def _shredded(tenant_id: TenantId, *, since: datetime) -> list[UUID]:
    recent = {"tenant_id": tenant_id, "destroyed_at__gte": since}
    ids = list(DataKey.objects.filter(**recent).values_list("id", flat=True))
    if not TenantKey.objects.filter(tenant_id=tenant_id, destroyed_at=None).exists():
        ids += TenantKey.objects.filter(**recent).values_list("id", flat=True)
    return ids


def destroy_again(*, now: datetime) -> int:
    """After a restore, before anything is started; how many came back. Raises what the storage
    raises."""
    return sum(_destroy_again(tenant_id, now) for tenant_id in list_tenants().values())


def _destroy_again(tenant_id: TenantId, now: datetime) -> int:
    ids = _noted(tenant_id)
    alive = {"tenant_id": tenant_id, "id__in": ids, "destroyed_at": None}
    with tenant(tenant_id):
        num_keys = DataKey.objects.filter(**alive).update(wrapped=None, destroyed_at=now)
        num_keys += TenantKey.objects.filter(**alive).update(
            wrapped=None, destroyed_at=now, retired_at=Coalesce(F("retired_at"), now)
        )
        if num_keys:
            record_change(
                actor=platform_actor(tenant_id),
                action="keys.destroyed_again",
                target="keys",
                change=(None, {"keys": num_keys}),
                reason="A backup had brought them back.",
                now=now,
            )
    for key_id in ids:
        held_keys.drop(key_id)
    return num_keys


def _note(tenant_id: TenantId, key_ids: Iterable[UUID]) -> int:
    store, num_noted = _storage(), 0
    for key_id in key_ids:
        name = f"{tenant_id}/{key_id}"
        if not store.exists(name):
            store.save(name, ContentFile(b""))
            num_noted += 1
    return num_noted


def _noted(tenant_id: TenantId) -> list[UUID]:
    try:
        _, names = _storage().listdir(str(tenant_id))
    except FileNotFoundError:
        return []
    return [uuid.UUID(name) for name in names if _is_id(name)]


def _is_id(name: str) -> bool:
    """Two who note one key at once leave a second name, which says nothing new."""
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False


def _storage() -> Storage:
    return storages[STORAGE]

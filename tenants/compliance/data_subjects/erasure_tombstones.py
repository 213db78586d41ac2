"""Tombstones: records of requested erasures, stored outside the database (tenants.base.tombstones).

A restore of an older backup repeats these erasures.

<tenant ID>/user.<user ID>.<erasure ID>     the erasure of a user
<tenant ID>/tenant.<erasure ID>             the erasure of the whole tenant
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import tombstones
from tenants.models import Erasure
from tenants.security.authorization.directory import list_tenants

_ID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAME: Final = re.compile(rf"(?:tenant|user\.(?P<user>{_ID}))\.(?P<erasure>{_ID})")


@dataclass(frozen=True, slots=True)
class ErasureTombstone:
    user_id: UUID | None  # None: the whole tenant
    erasure_id: UUID


def write_erasure_tombstone_on_commit(tenant_id: TenantId, tombstone: ErasureTombstone) -> None:
    """Write the tombstone after the commit. Call this in the transaction of the request."""
    tombstones.write_tombstones_on_commit(tenant_id, [_name_tombstone(tombstone)])


def write_missing_erasure_tombstones(*, now: datetime) -> int:
    """Write the missing tombstones of all tenants, and return their number.

    Only erasures of the last `tombstones.LOOKBACK` are checked. Raises errors of the storage.
    """
    num_written = 0
    for tenant_id in list_tenants().values():
        with tenant_scope(tenant_id):
            recent = Erasure.objects.filter(
                tenant_id=tenant_id, requested_at__gte=now - tombstones.LOOKBACK
            )
            names = [_name_tombstone(ErasureTombstone(row.user_id, row.id)) for row in recent]
        num_written += tombstones.write_tombstones(tenant_id, names)
    return num_written


def list_newest_tombstones(tenant_id: TenantId) -> list[ErasureTombstone]:
    """Return the newest tombstone of each user and of the whole tenant.

    Raises errors of the storage.
    """
    name_matches = filter(None, map(_NAME.fullmatch, tombstones.list_tombstones(tenant_id)))
    # IDs of erasures increase with time.
    matches = sorted(name_matches, key=lambda match: match["erasure"])
    newest = {match["user"]: UUID(match["erasure"]) for match in matches}
    return [
        ErasureTombstone(None if user is None else UUID(user), erasure_id)
        for user, erasure_id in newest.items()
    ]


def _name_tombstone(tombstone: ErasureTombstone) -> str:
    subject = "tenant" if tombstone.user_id is None else f"user.{tombstone.user_id}"
    return f"{subject}.{tombstone.erasure_id}"

"""The version of a tenant's snapshot. Each change that gateways must learn raises the version.

Packages whose data is part of a snapshot call `mark_snapshot_stale`. They cannot import the
function that publishes a snapshot, because that function imports all of them. The application
registers the function here.
"""

from collections.abc import Callable, Iterable
from typing import Final

from django.db import transaction
from django.db.models import F

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from tenants.base.errors import NotFound
from tenants.models import Tenant

# After a change for all tenants, the committing process publishes this many snapshots itself, which
# takes half a second.
PUBLISHED_AT_ONCE: Final = 50
Publisher = Callable[[TenantId], bool]  # see register_publisher
_publishers: list[Publisher] = []


def register_publisher(publisher: Publisher) -> None:
    """Register a function that publishes a tenant's snapshot after the commit of each change.

    It must not raise an exception. It returns False if no snapshot can be published at present.
    """
    if publisher not in _publishers:
        _publishers.append(publisher)


def mark_snapshot_stale(*, tenant_id: TenantId) -> None:
    """Raise the version of the tenant's snapshot, and publish the snapshot after the commit.

    Call this function in the transaction of every change that gateways must learn. It locks the
    tenant's row until the commit, so that versions grow in the order of commits. Raises NotFound.
    """
    num_updated = Tenant.objects.filter(id=tenant_id).update(
        snapshot_version=F("snapshot_version") + 1
    )
    if num_updated != 1:
        raise NotFound("This tenant does not exist.")
    transaction.on_commit(lambda: _publish(tenant_id), robust=True)


def mark_all_snapshots_stale() -> None:
    """Raise the version of all snapshots, except those of closed tenants.

    Call this function in the transaction of a change that concerns all tenants. After the commit,
    the process publishes the snapshots of the newest PUBLISHED_AT_ONCE tenants. The worker
    publishes the others within seconds.
    """
    Tenant.objects.exclude(status=TenantStatus.CLOSED).update(
        snapshot_version=F("snapshot_version") + 1
    )
    rows = Tenant.objects.exclude(status=TenantStatus.CLOSED).order_by("-created_at", "id")
    newest_ids = [
        TenantId(str(tenant_id))
        for tenant_id in rows.values_list("id", flat=True)[:PUBLISHED_AT_ONCE]
    ]
    transaction.on_commit(lambda: _publish_all(newest_ids), robust=True)


def _publish_all(tenant_ids: Iterable[TenantId]) -> None:
    """Publish the snapshots one by one.

    Stop at the first failure: if Redis hangs, each attempt would take seconds.
    """
    for tenant_id in tenant_ids:
        if not _publish(tenant_id):
            return


def _publish(tenant_id: TenantId) -> bool:
    """Publish a snapshot. Return False if no snapshot can be published at present."""
    return all(publisher(tenant_id) for publisher in _publishers)

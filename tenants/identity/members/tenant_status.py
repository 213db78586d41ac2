"""Changes of a tenant's status by operators, and the purge of the tenant's caches.

The transitions of the status:

    active <-> suspended
    active, suspended <-> closing     tenants.compliance.tenant_closing begins the closing
    closing -> closed                 closed is final
"""

from datetime import datetime
from types import MappingProxyType
from typing import Final

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict
from tenants.base.permissions import Permission
from tenants.base.validation.text import parse_reason
from tenants.identity.members.status_mail import mail_status_to_owners
from tenants.models import Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.privacy.retrieval_index.erasure import erase_index
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

ALLOWED_TRANSITIONS: Final = MappingProxyType(
    {
        TenantStatus.ACTIVE: frozenset({TenantStatus.SUSPENDED, TenantStatus.CLOSING}),
        TenantStatus.SUSPENDED: frozenset({TenantStatus.ACTIVE, TenantStatus.CLOSING}),
        TenantStatus.CLOSING: frozenset(
            {TenantStatus.ACTIVE, TenantStatus.SUSPENDED, TenantStatus.CLOSED}
        ),
        TenantStatus.CLOSED: frozenset[TenantStatus](),
    }
)


def set_status(
    *,
    actor: Actor,
    status: TenantStatus,
    reason: str,
    now: datetime,
    closes_at: datetime | None = None,
) -> None:
    """Set a tenant's status, and mail it to the owners. Gateways apply it within a second.

    At `closes_at`, the worker closes the tenant and deletes its data; None: never automatically.
    A change to any other status than ACTIVE erases the retrieval index.

    Raises Forbidden, InvalidValue, NotFound, and Conflict if the transition is not allowed.
    """
    actor.require_operator()
    reason = parse_reason(reason)
    with tenant_scope(actor.tenant_id):
        # Also locks the tenant, so that its status cannot change in the meantime.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = Tenant.objects.get(id=actor.tenant_id)
        current = TenantStatus(row.status)
        if status not in ALLOWED_TRANSITIONS[current]:
            raise _make_conflict(row.slug, current, status)
        Tenant.objects.filter(id=actor.tenant_id).update(status=status, closes_at=closes_at)
        if status is not TenantStatus.ACTIVE:
            erase_index(tenant_id=actor.tenant_id)
        record_change(
            actor=actor,
            action="tenant.status_changed",
            target=f"tenant:{row.slug}",
            change=({"status": current.value}, _to_change_fields(status, closes_at)),
            reason=reason,
            now=now,
        )
        mail_status_to_owners(
            tenant=row, status=status, reason=reason, now=now, closes_at=closes_at
        )


def _to_change_fields(status: TenantStatus, closes_at: datetime | None) -> ChangeFields:
    fields: ChangeFields = {"status": status.value}
    return fields if closes_at is None else {**fields, "closes_at": closes_at.isoformat()}


def _make_conflict(slug: str, current: TenantStatus, requested_status: TenantStatus) -> Conflict:
    if current is requested_status:
        return Conflict("{slug} is already {status}.", slug=slug, status=current)
    return Conflict(
        "{slug} is {status} and cannot become {wanted}.",
        slug=slug,
        status=current,
        wanted=requested_status,
    )


def purge_cache(*, actor: Actor, reason: str, now: datetime) -> int:
    """Erase the tenant's retrieval index, start a new cache epoch, and return the epoch's number.

    The epoch is part of the cache namespace, so entries of earlier epochs are never used again.

    Raises Forbidden, InvalidValue, NotFound.
    """
    actor.require(Permission.WRITE_POLICY)
    reason = parse_reason(reason)
    with tenant_scope(actor.tenant_id):
        # Also locks the tenant, so that two purges do not get the same epoch.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = Tenant.objects.get(id=actor.tenant_id)
        epoch = row.cache_epoch + 1
        Tenant.objects.filter(id=actor.tenant_id).update(cache_epoch=epoch)
        erase_index(tenant_id=actor.tenant_id)
        record_change(
            actor=actor,
            action="tenant.cache_purged",
            target=f"tenant:{row.slug}",
            change=({"cache_epoch": row.cache_epoch}, {"cache_epoch": epoch}),
            reason=reason,
            now=now,
        )
    return epoch

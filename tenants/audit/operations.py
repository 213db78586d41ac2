"""Writes the audit trail. Entries hold no secrets: no key texts, digests or passwords."""

from datetime import datetime
from typing import TypeAlias

from tenants.members.actor import Actor
from tenants.models import AuditEntry

Facts: TypeAlias = dict[str, str | int | dict[str, object] | None]


def record_change(
    *,
    actor: Actor,
    action: str,
    target: str,
    now: datetime,
    change: tuple[Facts | None, Facts | None],
    reason: str = "",
) -> None:
    """Adds an entry to the tenant's trail; must run inside the tenant's scope.

    `change` is what there was before and what there is now; None for nothing.
    """
    before, after = change
    AuditEntry.objects.create(
        tenant_id=actor.tenant_id,
        actor_id=actor.user_id,
        action=action,
        target=target,
        before=before,
        after=after,
        address=actor.address,
        request_id=actor.request_id,
        reason=reason,
        at=now,
    )

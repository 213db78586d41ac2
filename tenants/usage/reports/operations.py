"""The operation that sets the minimum size of groups in a tenant's reports."""

from datetime import datetime
from typing import Final

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.base.validation.text import parse_reason
from tenants.models import Tenant
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

MAX_MIN_USERS: Final = 1_000


def set_min_group_users(*, actor: Actor, min_users: int, reason: str, now: datetime) -> None:
    """Set the minimum number of users of a group that reports show. 1: nothing is suppressed.

    Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.WRITE_POLICY)
    reason = parse_reason(reason)
    if not 1 <= min_users <= MAX_MIN_USERS:
        raise InvalidValue(
            "min_users", "Enter a whole number from 1 to {most}.", most=MAX_MIN_USERS
        )
    with tenant_scope(actor.tenant_id):
        row = Tenant.objects.select_for_update().get(id=actor.tenant_id)
        Tenant.objects.filter(id=actor.tenant_id).update(min_group_users=min_users)
        record_change(
            actor=actor,
            action="reports.min_group_size_changed",
            target=f"tenant:{row.slug}",
            change=({"min_users": row.min_group_users}, {"min_users": min_users}),
            reason=reason,
            now=now,
        )

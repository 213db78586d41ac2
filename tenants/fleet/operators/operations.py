"""Operations of operators on a tenant: name, status, plan, region, limits.

Each needs a reason and is recorded in the tenant's audit log.
"""

from datetime import date, datetime
from typing import Final

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Role
from tenants.base.validation.text import parse_reason
from tenants.billing.plans.operations import subscribe
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.snapshots.platform_limits import PlatformLimits
from tenants.identity.members.operations import read_region
from tenants.identity.members.tenant_status import set_status
from tenants.identity.tenant_lifecycle import change_tenant_columns, rename_tenant
from tenants.models import Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.authorization.actor import Actor, OperatorIdentity

MAX_CEILING: Final = 1_000_000


def change_status(*, actor: Actor, status: TenantStatus, reason: str, now: datetime) -> None:
    """Suspend, resume or close a tenant. Raises Forbidden, InvalidValue, NotFound, Conflict."""
    actor.require_operator()
    set_status(actor=actor, status=status, reason=required_reason(reason), now=now)


def change_name(*, actor: Actor, name: str, reason: str, now: datetime) -> None:
    """Change the name that people see. Raises Forbidden, InvalidValue."""
    actor.require_operator()
    rename_tenant(actor=actor, name=name, reason=required_reason(reason), now=now)


def update_tenant(
    *, actor: Actor, name: str | None, status: TenantStatus | None, reason: str, now: datetime
) -> None:
    """Change a tenant's name and status to the given ones. None and equal values change nothing.

    Either all is changed, or nothing. Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require_operator()
    reason = required_reason(reason)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        row = Tenant.objects.get(id=actor.tenant_id)
        if name is not None and name.strip() != row.name:
            change_name(actor=actor, name=name, reason=reason, now=now)
        if status is not None and status != row.status:
            change_status(actor=actor, status=status, reason=reason, now=now)


def change_plan(*, actor: Actor, plan: str, starts_on: date, reason: str, now: datetime) -> None:
    """Change a tenant's plan. Raises Forbidden, InvalidValue, NotFound, Conflict."""
    actor.require_operator()
    subscribe(actor=actor, plan=plan, starts_on=starts_on, reason=required_reason(reason), now=now)


def change_region(*, actor: Actor, region: str, reason: str, now: datetime) -> None:
    """Change the region where the tenant's data is kept, without moving data.

    Raises Forbidden, InvalidValue, NotFound.
    """
    actor.require_operator()
    change_tenant_columns(
        actor=actor,
        action="tenant.region_changed",
        columns={"region": read_region(region)},
        reason=required_reason(reason),
        now=now,
    )


def change_limits(*, actor: Actor, ceiling: PlatformLimits, reason: str, now: datetime) -> None:
    """Set upper limits that apply whatever the tenant's policy says.

    Gateways apply them within a second. Raises Forbidden, InvalidValue, NotFound.
    """
    actor.require_operator()
    reason = required_reason(reason)
    limits: dict[str, int | None] = {
        "max_concurrent_completions": ceiling.max_concurrent_completions,
        "max_requests_per_minute": ceiling.max_requests_per_minute,
    }
    for name, value in limits.items():
        if value is not None and not 1 <= value <= MAX_CEILING:
            raise InvalidValue(
                name, "Enter 1 to {most:,}, or leave empty for no limit.", most=MAX_CEILING
            )
    change_tenant_columns(
        actor=actor, action="tenant.limits_changed", columns={**limits}, reason=reason, now=now
    )


def required_reason(text: str) -> str:
    """Return the reason, which must not be empty. Raises InvalidValue."""
    if not (reason := parse_reason(text)):
        raise InvalidValue("reason", "Enter a reason. The tenant's auditors can read it.")
    return reason


def operator_actor(
    operator: OperatorView, *, tenant_id: TenantId, address: str, request_id: str
) -> Actor:
    """Return the operator's actor. It has no role's permissions, only those of operators."""
    return Actor(
        tenant_id=tenant_id,
        user_id=None,
        role=Role.AUDITOR,
        address=address,
        request_id=request_id,
        operator=OperatorIdentity(operator.handle, can_change=operator.can_change),
    )

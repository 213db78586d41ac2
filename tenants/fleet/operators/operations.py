"""Operations of operators on a tenant: name, status, owners, plan, region, limits, trial.

Each operation needs a reason and is recorded in the tenant's audit log.
"""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Role
from tenants.base.validation.text import parse_reason
from tenants.billing.plans.operations import subscribe_tenant
from tenants.compliance.tenant_closing import begin_closing, close_now
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.snapshots.platform_limits import PlatformLimits
from tenants.identity import ownership
from tenants.identity.members.operations import parse_region
from tenants.identity.members.tenant_status import set_status
from tenants.identity.tenant_lifecycle import change_tenant_columns, rename_tenant
from tenants.identity.trials import set_trial_end
from tenants.models import Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.authorization.actor import Actor, OperatorIdentity

_MAX_PLATFORM_LIMIT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class TenantChange:
    """The new values of a tenant's settings. None, or the current value, changes nothing."""

    name: str | None = None
    status: TenantStatus | None = None
    grace_days: int | None = None  # for the status CLOSING; None: the installation's setting
    sets_trial: bool = False  # True: `trial_ends_on` is the new value, even if it is None
    trial_ends_on: date | None = None  # last day with completions; None: no trial


def change_status(
    *,
    actor: Actor,
    status: TenantStatus,
    reason: str,
    now: datetime,
    grace_days: int | None = None,
) -> None:
    """Suspend, resume or close a tenant. `grace_days` is explained in TenantChange.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require_operator()
    reason = require_tenant_reason(reason)
    if status is TenantStatus.CLOSING:
        begin_closing(actor=actor, reason=reason, now=now, grace_days=grace_days)
    elif status is TenantStatus.CLOSED:
        close_now(actor=actor, reason=reason, now=now)
    else:
        set_status(actor=actor, status=status, reason=reason, now=now)


def change_trial(*, actor: Actor, ends_on: date | None, reason: str, now: datetime) -> None:
    """Change the last day of the trial. None: the tenant has no trial any more.

    Raises Forbidden, InvalidValue.
    """
    actor.require_operator()
    set_trial_end(actor=actor, ends_on=ends_on, reason=require_tenant_reason(reason), now=now)


def change_name(*, actor: Actor, name: str, reason: str, now: datetime) -> None:
    """Change the tenant's displayed name. Raises Forbidden, InvalidValue."""
    actor.require_operator()
    rename_tenant(actor=actor, name=name, reason=require_tenant_reason(reason), now=now)


def appoint_owner(*, actor: Actor, email: str, reason: str, now: datetime) -> None:
    """Make the member with this e-mail address an owner. All owners get an e-mail.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require_operator()
    reason = require_tenant_reason(reason)
    ownership.appoint_owner(actor=actor, email=email, reason=reason, now=now)


def update_tenant(*, actor: Actor, change: TenantChange, reason: str, now: datetime) -> None:
    """Change a tenant's settings. Either all settings are changed, or none.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require_operator()
    reason = require_tenant_reason(reason)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        row = Tenant.objects.get(id=actor.tenant_id)
        if change.name is not None and change.name.strip() != row.name:
            change_name(actor=actor, name=change.name, reason=reason, now=now)
        if change.sets_trial and change.trial_ends_on != row.trial_ends_on:
            change_trial(actor=actor, ends_on=change.trial_ends_on, reason=reason, now=now)
        if change.status is not None and change.status != row.status:
            change_status(
                actor=actor,
                status=change.status,
                reason=reason,
                now=now,
                grace_days=change.grace_days,
            )


def change_plan(*, actor: Actor, plan: str, starts_on: date, reason: str, now: datetime) -> None:
    """Change a tenant's plan. `plan` is the slug of the new plan.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require_operator()
    subscribe_tenant(
        actor=actor, plan=plan, starts_on=starts_on, reason=require_tenant_reason(reason), now=now
    )


def change_region(*, actor: Actor, region: str, reason: str, now: datetime) -> None:
    """Change the tenant's region. Existing data is not moved.

    Raises Forbidden, InvalidValue, NotFound.
    """
    actor.require_operator()
    change_tenant_columns(
        actor=actor,
        action="tenant.region_changed",
        columns={"region": parse_region(region)},
        reason=require_tenant_reason(reason),
        now=now,
    )


def change_limits(
    *, actor: Actor, platform_limits: PlatformLimits, reason: str, now: datetime
) -> None:
    """Set upper limits, which apply even if the tenant's policy allows more.

    Gateways apply them within a second. Raises Forbidden, InvalidValue, NotFound.
    """
    actor.require_operator()
    reason = require_tenant_reason(reason)
    limits: dict[str, int | None] = {
        "max_concurrent_completions": platform_limits.max_concurrent_completions,
        "max_requests_per_minute": platform_limits.max_requests_per_minute,
    }
    for name, value in limits.items():
        if value is not None and not 1 <= value <= _MAX_PLATFORM_LIMIT:
            raise InvalidValue(
                name,
                "Enter 1 to {most:,}, or leave empty for no limit.",
                most=_MAX_PLATFORM_LIMIT,
            )
    # `columns` is a copy, because the type checker does not accept `limits` as ChangeFields.
    change_tenant_columns(
        actor=actor, action="tenant.limits_changed", columns={**limits}, reason=reason, now=now
    )


def require_tenant_reason(text: str) -> str:
    """Return the reason, which must not be empty. Raises InvalidValue."""
    if not (reason := parse_reason(text)):
        raise InvalidValue(
            "reason",
            "Enter a reason. The tenant's owners, administrators and auditors can read it.",
        )
    return reason


def build_operator_actor(
    operator: OperatorView, *, tenant_id: TenantId, address: str, request_id: str
) -> Actor:
    """Return the operator as an actor, who may do only what operators may do in a tenant.

    `address` is the operator's IP address.
    """
    return Actor(
        tenant_id=tenant_id,
        user_id=None,
        role=Role.AUDITOR,  # grants nothing: an actor with an operator has no tenant permissions
        address=address,
        request_id=request_id,
        operator=OperatorIdentity(operator.handle, can_change=operator.can_change),
    )

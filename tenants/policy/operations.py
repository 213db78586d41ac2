"""Operations that write policies: each change is a new version with a reason."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from caret.contracts.policy import TenantPolicy
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import utc_day
from tenants.base.errors import VersionConflict
from tenants.base.permissions import Permission
from tenants.base.validation.text import require_reason
from tenants.models import PolicyVersion
from tenants.policy.availability.model_offers import check_policy_models
from tenants.policy.document import parse_policy, serialize_policy
from tenants.policy.queries import PolicyVersionView, find_policy_in_force
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A change of a tenant's policy whose transaction has not been committed yet."""

    actor: Actor
    old: TenantPolicy
    new: TenantPolicy
    version: int  # of the new policy
    now: datetime


# A further effect of a change. Raises InvalidValue if the change is not possible.
PolicyEffect = Callable[[PolicyChange], None]
_effects: list[PolicyEffect] = []


def register_effect(effect: PolicyEffect) -> None:
    """Call `effect` in the transaction of each change, with the tenant's row locked.

    Effects run in the order of their registration.
    """
    if effect not in _effects:
        _effects.append(effect)


def set_policy(
    *,
    actor: Actor,
    document: object,
    reason: str,
    now: datetime,
    expected_version: int | None = None,
) -> PolicyVersionView:
    """Put a new policy in force. Gateways learn it after the commit.

    Registered effects run in the same transaction. `expected_version` is the version that the
    author has seen; None: any version. Raises Forbidden, InvalidValue (also from effects), and
    VersionConflict if another version is in force.
    """
    actor.require(Permission.WRITE_POLICY)
    policy = parse_policy(document)
    reason = require_reason(reason)
    with tenant_scope(actor.tenant_id):
        # Locks the tenant's row first, so that concurrent changes become consecutive versions.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        current = find_policy_in_force(tenant_id=actor.tenant_id)
        if expected_version not in (None, current.version):
            raise VersionConflict(
                current_version=current.version, expected_version=expected_version
            )
        check_policy_models(
            tenant_id=actor.tenant_id, current=current.policy, proposed=policy, on=utc_day(now)
        )
        insert_version(
            actor=actor, policy=policy, version=current.version + 1, reason=reason, now=now
        )
        change = PolicyChange(actor, current.policy, policy, current.version + 1, now)
        for effect in _effects:
            effect(change)
        record_change(
            actor=actor,
            action="policy.changed",
            target=f"policy:{current.version + 1}",
            change=(_to_change_fields(current.policy), _to_change_fields(policy)),
            reason=reason,
            now=now,
        )
        return find_policy_in_force(tenant_id=actor.tenant_id)


def insert_version(
    *, actor: Actor, policy: TenantPolicy, version: int, reason: str, now: datetime
) -> None:
    """Insert a version, without effects and without an audit entry.

    set_policy uses this function, and so do the creation and the erasure of a tenant.
    """
    PolicyVersion.objects.create(
        tenant_id=actor.tenant_id,
        version=version,
        document=serialize_policy(policy),
        author_id=actor.user_id,
        author_key=actor.key or "",
        reason=reason,
        created_at=now,
    )


def _to_change_fields(policy: TenantPolicy) -> ChangeFields:
    return {"policy": serialize_policy(policy)}

"""Operations that write policy overrides: each change is a new version with a reason."""

from datetime import datetime
from typing import Final

from caret.contracts.policy import PolicyOverride
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import utc_day
from tenants.base.errors import Conflict, VersionConflict
from tenants.base.permissions import Permission
from tenants.base.validation.text import require_reason
from tenants.models import PolicyOverrideVersion
from tenants.policy.availability.model_offers import check_override_models
from tenants.policy.overrides.document import parse_override, serialize_override
from tenants.policy.overrides.queries import (
    OverrideInForce,
    OverrideSubject,
    find_override,
    read_overrides,
)
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

# Overrides in force at the same time in one tenant. Its snapshot contains all of them.
MAX_OVERRIDES: Final = 1_000
MAX_GLOBS: Final = 5_000  # of all overrides together


def set_override(
    *,
    actor: Actor,
    subject: OverrideSubject,
    document: object,
    reason: str,
    now: datetime,
    expected_version: int | None = None,
) -> OverrideInForce:
    """Set the override of a team or a user. Gateways learn it after the commit.

    An empty document removes the override. `expected_version` is the version that the author has
    seen; 0: no version existed; None: any version. Raises Forbidden, InvalidValue, NotFound,
    Conflict, and VersionConflict if another version is in force.
    """
    actor.require(Permission.WRITE_POLICY)
    override = parse_override(document)
    reason = require_reason(reason)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant's row
        current = find_override(actor=actor, subject=subject)
        if expected_version not in (None, current.version):
            raise VersionConflict(
                current_version=current.version, expected_version=expected_version
            )
        check_override_models(
            tenant_id=actor.tenant_id, current=current.override, proposed=override, on=utc_day(now)
        )
        _require_size_limits(actor, subject, override)
        _insert_version(actor, current, override, reason, now)
        record_change(
            actor=actor,
            action="policy_override.changed",
            target=f"{subject.kind}:{subject.id}",
            change=(_to_change_fields(current.override), _to_change_fields(override)),
            reason=reason,
            now=now,
        )
        return find_override(actor=actor, subject=subject)


def _require_size_limits(actor: Actor, subject: OverrideSubject, override: PolicyOverride) -> None:
    """Check the limits of overrides and globs as if the override were set. Raises Conflict."""
    in_force = read_overrides(tenant_id=actor.tenant_id).all
    # Only a first override of a subject increases the number. An empty one removes an override.
    if override != PolicyOverride() and subject not in in_force and len(in_force) >= MAX_OVERRIDES:
        raise Conflict(
            "You already have overrides for {most} teams and users, which is the limit.",
            most=MAX_OVERRIDES,
        )
    other_overrides = (other.override for other in in_force.values() if other.subject != subject)
    if sum(map(_count_globs, (*other_overrides, override))) > MAX_GLOBS:
        raise Conflict(
            "All overrides together can have at most {most} exclusion patterns.",
            most=MAX_GLOBS,
        )


def _count_globs(override: PolicyOverride) -> int:
    return sum(map(len, override.content_exclusion.values()))


def _insert_version(
    actor: Actor, current: OverrideInForce, override: PolicyOverride, reason: str, now: datetime
) -> None:
    PolicyOverrideVersion.objects.create(
        tenant_id=actor.tenant_id,
        subject_kind=current.subject.kind,
        subject_id=current.subject.id,
        version=current.version + 1,
        document=serialize_override(override),
        author_id=actor.user_id,
        author_key=actor.key or "",
        reason=reason,
        created_at=now,
    )


def _to_change_fields(override: PolicyOverride) -> ChangeFields:
    return {"override": serialize_override(override)}

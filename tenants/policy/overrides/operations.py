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
from tenants.policy.model_offers import check_override_models
from tenants.policy.overrides.document import read_layer, write_layer
from tenants.policy.overrides.queries import (
    OverrideInForce,
    OverrideSubject,
    find_override,
    read_overrides,
)
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

# In force at once in one tenant, because its snapshot contains all of them.
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
    """Set the override of a team or a user. Gateways learn it at once.

    An empty document removes the override. `expected_version` is the version that the author has
    seen, 0: none; None: any version.

    Raises Forbidden, InvalidValue, NotFound, Conflict, and VersionConflict when another version is
    in force by now.
    """
    actor.require(Permission.WRITE_POLICY)
    layer = read_layer(document)
    reason = require_reason(reason)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        held = find_override(actor=actor, subject=subject)
        if expected_version not in (None, held.version):
            raise VersionConflict(held=held.version, replaced=expected_version)
        check_override_models(
            tenant_id=actor.tenant_id, held=held.layer, wanted=layer, on=utc_day(now)
        )
        _require_room(actor, subject, layer)
        _insert_version(actor, held, layer, reason, now)
        record_change(
            actor=actor,
            action="policy_override.changed",
            target=f"{subject.kind}:{subject.id}",
            change=(_to_change_fields(held.layer), _to_change_fields(layer)),
            reason=reason,
            now=now,
        )
        return find_override(actor=actor, subject=subject)


def _require_room(actor: Actor, subject: OverrideSubject, layer: PolicyOverride) -> None:
    """Check the tenant's limits of overrides and globs. Raises Conflict."""
    in_force = read_overrides(tenant_id=actor.tenant_id).all
    if layer != PolicyOverride() and subject not in in_force and len(in_force) >= MAX_OVERRIDES:
        raise Conflict(
            "You already have overrides for {most} teams and users, which is the limit.",
            most=MAX_OVERRIDES,
        )
    others = (each.layer for each in in_force.values() if each.subject != subject)
    if sum(map(_num_globs, (*others, layer))) > MAX_GLOBS:
        raise Conflict(
            "The tenant and all overrides together can have at most {most} exclusion patterns.",
            most=MAX_GLOBS,
        )


def _num_globs(layer: PolicyOverride) -> int:
    return sum(map(len, layer.content_exclusion.values()))


def _insert_version(
    actor: Actor, held: OverrideInForce, layer: PolicyOverride, reason: str, now: datetime
) -> None:
    PolicyOverrideVersion.objects.create(
        tenant_id=actor.tenant_id,
        subject_kind=held.subject.kind,
        subject_id=held.subject.id,
        version=held.version + 1,
        document=write_layer(layer),
        author_id=actor.user_id,
        author_key=actor.key or "",
        reason=reason,
        created_at=now,
    )


def _to_change_fields(layer: PolicyOverride) -> ChangeFields:
    return {"override": write_layer(layer)}

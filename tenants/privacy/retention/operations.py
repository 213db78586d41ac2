"""Operations on retention rules and legal holds."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue, NotFound, VersionConflict
from tenants.base.permissions import Permission
from tenants.base.validation.text import require_reason, validate_text
from tenants.base.validation.time_bounds import validate_datetime
from tenants.models import LegalHold, Membership, RetentionRule, Tenant
from tenants.policy.data_classes import DATA_CLASSES, DataClass, DataClassTerms
from tenants.privacy.retention.rules_in_force import (
    EffectiveRule,
    find_previous_days,
    get_default_days,
    load_rule,
)
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

MAX_NAME_CHARS = 120


@dataclass(frozen=True, slots=True)
class NewHold:
    name: str
    reason: str
    user_id: uuid.UUID | None = None  # None: all users
    # The period of the data, half-open; None: unbounded.
    since: datetime | None = None
    until: datetime | None = None


def require_days(terms: DataClassTerms, days: int) -> None:
    """Check the number of days. Raises InvalidValue, and Conflict for a class with fixed days."""
    if not terms.is_overridable:
        raise Conflict(
            "{title}: you cannot change the retention period of this data class.", title=terms.title
        )
    if not terms.min_days <= days <= terms.max_days:
        raise InvalidValue(
            "days",
            "Enter a whole number from {least} to {most}.",
            least=terms.min_days,
            most=terms.max_days,
        )


def set_rule(
    *,
    actor: Actor,
    data_class: DataClass,
    days: int,
    reason: str,
    now: datetime,
    expected_version: int | None = None,
) -> EffectiveRule:
    """Set the retention days of a data class.

    The next purge uses them, or the policy's days if these are fewer. An interrupted purge that
    continues applies the new days only if they are more. `expected_version` is the version that the
    author has seen; 0: no rule had ever been set; None: any version.

    Raises Forbidden, InvalidValue, Conflict.
    """
    actor.require(Permission.WRITE_RETENTION)
    require_days(DATA_CLASSES[data_class], days)
    return _put_in_force(
        actor, data_class, days, require_reason(reason), expected_version=expected_version, now=now
    )


def undo_rule(
    *, actor: Actor, data_class: DataClass, version: int, reason: str, now: datetime
) -> EffectiveRule:
    """Restore the days that were in force before `version`. `version` must still be in force.

    The restored days are the tenant's own or the default. A restored default follows later changes
    of the default. Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require(Permission.WRITE_RETENTION)
    with tenant_scope(actor.tenant_id):
        days = find_previous_days(data_class, version, tenant_id=actor.tenant_id)
    if days is not None:
        require_days(DATA_CLASSES[data_class], days)
    return _put_in_force(
        actor, data_class, days, require_reason(reason), expected_version=version, now=now
    )


def _put_in_force(
    actor: Actor,
    data_class: DataClass,
    days: int | None,
    reason: str,
    *,
    expected_version: int | None,
    now: datetime,
) -> EffectiveRule:
    """Put a new version with these days in force; `days` None: the default."""
    with tenant_scope(actor.tenant_id):
        _lock_tenant(actor.tenant_id)
        current = load_rule(data_class, tenant_id=actor.tenant_id)
        version = current.version or 0
        if expected_version not in (None, version):
            raise VersionConflict(current_version=version, expected_version=expected_version)
        RetentionRule.objects.create(
            tenant_id=actor.tenant_id,
            data_class=data_class,
            version=version + 1,
            days=get_default_days(data_class, tenant_id=actor.tenant_id) if days is None else days,
            is_default=days is None,
            reason=reason,
            author_id=actor.user_id,
            created_at=now,
        )
        record_change(
            actor=actor,
            action="retention.changed",
            target=f"retention:{data_class}",
            change=({"days": current.days}, {"days": "default" if days is None else days}),
            reason=reason,
            now=now,
        )
        return load_rule(data_class, tenant_id=actor.tenant_id)


def place_hold(*, actor: Actor, new: NewHold, now: datetime) -> uuid.UUID:
    """Place a legal hold: no purge deletes the data that it covers.

    Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.WRITE_LEGAL_HOLDS)
    name = _validate_name(new.name)
    reason = require_reason(new.reason)
    with tenant_scope(actor.tenant_id):
        _lock_tenant(actor.tenant_id)
        check_coverage(actor, new)
        row = LegalHold.objects.create(
            tenant_id=actor.tenant_id,
            name=name,
            user_id=new.user_id,
            since=new.since,
            until=new.until,
            reason=reason,
            created_at=now,
        )
        record_change(
            actor=actor,
            action="hold.placed",
            target=f"hold:{row.id}",
            change=(None, {"name": name, "user": str(new.user_id) if new.user_id else None}),
            reason=reason,
            now=now,
        )
        return row.id


def check_coverage(actor: Actor, new: NewHold) -> None:
    """Check the user and the period of a hold. Raises InvalidValue.

    Must run inside the tenant's scope.
    """
    validate_datetime("since", new.since)
    validate_datetime("until", new.until)
    if new.since is not None and new.until is not None and new.since >= new.until:
        raise InvalidValue("until", "The end must be after the start.")
    if new.user_id is not None and not _is_known(actor.tenant_id, new.user_id):
        raise InvalidValue("user_id", "This user is not a member of the tenant.")


def release_hold(*, actor: Actor, hold_id: uuid.UUID, reason: str, now: datetime) -> None:
    """Release a hold.

    Raises Forbidden, InvalidValue, NotFound, and Conflict if the hold was released before.
    """
    actor.require(Permission.WRITE_LEGAL_HOLDS)
    reason = require_reason(reason)
    with tenant_scope(actor.tenant_id):
        _lock_tenant(actor.tenant_id)
        rows = LegalHold.objects.filter(tenant_id=actor.tenant_id, id=hold_id)
        if not rows.exists():
            raise NotFound("This legal hold does not exist.")
        if not rows.filter(released_at=None).update(released_at=now):
            raise Conflict("This legal hold was already released.")
        record_change(
            actor=actor,
            action="hold.released",
            target=f"hold:{hold_id}",
            change=({"is_in_force": True}, {"is_in_force": False}),
            reason=reason,
            now=now,
        )


def _lock_tenant(tenant_id: TenantId) -> None:
    """Lock the tenant's row, so that a change takes effect between two batches of a purge."""
    Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)


def _is_known(tenant_id: TenantId, user_id: uuid.UUID) -> bool:
    """Return whether the user is or was a member."""
    return Membership.objects.filter(tenant_id=tenant_id, user_id=user_id).exists()


def _validate_name(text: str) -> str:
    validate_text("name", text)
    if not 1 <= len(text.strip()) <= MAX_NAME_CHARS:
        raise InvalidValue("name", "Enter a name of 1 to {most} characters.", most=MAX_NAME_CHARS)
    return text.strip()

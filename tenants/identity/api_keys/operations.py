"""Operations that create, rotate and revoke API keys.

The text of a key exists only in the response to the caller who creates or rotates it.
"""

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from caret.contracts.api_key import KeyKind, generate_key
from caret.foundation.ids import LookupId, TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Permission
from tenants.base.validation.text import parse_reason
from tenants.base.worker.failure_log import FailureLog
from tenants.identity.api_keys.queries import KeyState, KeyView, find_key, require_lookup_id
from tenants.identity.api_keys.row_writes import (
    check_key_lifetime_policy,
    insert_key,
    require_below_key_limit,
    require_member,
    set_secret,
    to_change_fields,
)
from tenants.identity.api_keys.scopes import parse_scopes
from tenants.identity.api_keys.validation import (
    KeyRequest,
    check_expiry,
    require_current_secret,
    require_no_later_expiry_than_actor,
    require_not_wider_than_actor,
    validate_key_request,
)
from tenants.models import ApiKey
from tenants.models.api_key import filter_idle_keys
from tenants.policy.queries import load_active_policy
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import list_tenants

MAX_OVERLAP: Final = timedelta(days=7)  # of the old and the new secret of a rotated key
_MAX_OVERLAP_HOURS: Final = MAX_OVERLAP // timedelta(hours=1)
_MAX_KEYS_PER_RUN: Final = 500  # of a tenant; each key is revoked in its own transaction


def revoke_all_idle_keys(*, now: datetime) -> None:
    """Revoke the idle keys of every tenant. An error is logged, and the next tenant follows."""
    for tenant_id in list_tenants().values():
        with FailureLog("api_keys.not_revoked", tenant_id=tenant_id):
            revoke_idle_keys(tenant_id=tenant_id, now=now)


def revoke_idle_keys(*, tenant_id: TenantId, now: datetime) -> list[LookupId]:
    """Revoke idle keys of a tenant and return their lookup IDs.

    Does nothing if the policy does not set `revoke_idle_keys_after_days`. Revokes at most
    `_MAX_KEYS_PER_RUN` keys; the next run revokes the rest.
    """
    days = load_active_policy(tenant_id=tenant_id).revoke_idle_keys_after_days
    if days is None:
        return []
    with tenant_scope(tenant_id):
        keys = ApiKey.objects.filter(tenant_id=tenant_id)
        idle = filter_idle_keys(keys, unused_for=timedelta(days=days), now=now).order_by("id")
        lookup_ids = [
            LookupId(lookup_id)
            for lookup_id in idle.values_list("lookup_id", flat=True)[:_MAX_KEYS_PER_RUN]
        ]
    for lookup_id in lookup_ids:
        reason = f"Unused for {days} days, the limit in the policy."
        revoke_key(actor=build_system_actor(tenant_id), lookup_id=lookup_id, reason=reason, now=now)
    return lookup_ids


@dataclass(frozen=True, slots=True)
class CreatedKey:
    text: str = field(repr=False)  # shown once, stored nowhere
    key: KeyView


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """Options of a rotation."""

    overlap: timedelta  # for which the old secret stays valid, at most MAX_OVERLAP
    expires_at: datetime | None = None  # None: keep the current expiry
    reason: str = ""


def create_key(*, actor: Actor, new: KeyRequest, now: datetime) -> CreatedKey:
    """Create a key. Gateways accept it at once. Raises Forbidden, InvalidValue, Conflict."""
    actor.require(Permission.CREATE_KEYS)
    return add_key(actor, new, now)


def add_key(actor: Actor, new: KeyRequest, now: datetime, *, reason: str = "") -> CreatedKey:
    """Create a key. The caller has checked the permission.

    Raises the errors of create_key.
    """
    require_current_secret(actor)
    new = validate_key_request(new, now)
    require_not_wider_than_actor(actor, scopes=new.scopes, networks=new.networks)
    require_no_later_expiry_than_actor(actor, new.expires_at)
    generated = generate_key(new.kind)
    with tenant_scope(actor.tenant_id):
        # This locks the tenant, so that concurrent creations cannot exceed the maximum of keys.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        check_key_lifetime_policy(actor, new.owner_id, new.expires_at, now)
        require_below_key_limit(actor, now)
        require_member(actor, new.owner_id)
        insert_key(actor, new, generated, now)
        record_change(
            actor=actor,
            action="key.created",
            target=f"key:{generated.lookup_id}",
            change=(None, to_change_fields(new)),
            reason=reason,
            now=now,
        )
        view = find_key(actor=actor, lookup_id=generated.lookup_id, now=now)
    return CreatedKey(text=generated.text, key=view)


def rotate_key(
    *, actor: Actor, lookup_id: LookupId, rotation: KeyRotation, now: datetime
) -> CreatedKey:
    """Give a key a new secret. The old secret stays valid for `rotation.overlap`.

    At most two secrets are valid: a second rotation ends the oldest one at once. Raises Forbidden,
    InvalidValue, NotFound, and Conflict for a key that is not active or is the playground's.
    """
    actor.require(Permission.CREATE_KEYS)
    require_current_secret(actor)
    reason = parse_reason(rotation.reason)
    _check_rotation(actor, lookup_id, rotation, now)
    with tenant_scope(actor.tenant_id):
        # This locks the tenant, so that the key cannot change in the meantime.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = _find_rotatable_key(actor, lookup_id, now)
        expires_at = rotation.expires_at or row.expires_at
        require_not_wider_than_actor(
            actor, scopes=parse_scopes(row.scopes), networks=tuple(row.networks)
        )
        require_no_later_expiry_than_actor(actor, expires_at)
        owner_id = None if row.owner_id is None else UserId(str(row.owner_id))
        check_key_lifetime_policy(actor, owner_id, expires_at, now)
        generated = generate_key(KeyKind(row.kind), lookup_id=lookup_id)
        row.issued_by_id = (
            None if actor.accountable_user_id is None else uuid.UUID(actor.accountable_user_id)
        )
        change = set_secret(row, generated, rotation.overlap, expires_at, now)
        record_change(
            actor=actor,
            action="key.rotated",
            target=f"key:{lookup_id}",
            change=change,
            reason=reason,
            now=now,
        )
        view = find_key(actor=actor, lookup_id=lookup_id, now=now)
    return CreatedKey(text=generated.text, key=view)


def revoke_key(*, actor: Actor, lookup_id: LookupId, reason: str, now: datetime) -> KeyView:
    """Revoke a key. Gateways reject it within a second. Nothing changes if it was revoked before.

    Members without REVOKE_KEYS may revoke their own keys. Raises Forbidden, InvalidValue, NotFound.
    """
    if not actor.has_permission(Permission.MANAGE_OWN_KEYS):
        actor.require(Permission.REVOKE_KEYS)
    reason = parse_reason(reason)
    require_lookup_id(lookup_id)
    with tenant_scope(actor.tenant_id):
        key = find_key(actor=actor, lookup_id=lookup_id, now=now)
        if key.owner_id is None or key.owner_id != actor.user_id:
            actor.require(Permission.REVOKE_KEYS)
        if key.revoked_at is not None:
            return key
        # Lock order: the tenant before the key, as in all operations on keys. Otherwise two of them
        # could deadlock.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        num_revoked = ApiKey.objects.filter(
            tenant_id=actor.tenant_id, lookup_id=lookup_id, revoked_at=None
        ).update(revoked_at=now)
        if num_revoked:  # 0: a concurrent call has revoked the key
            _record_revocation(actor, lookup_id, reason, now)
        return find_key(actor=actor, lookup_id=lookup_id, now=now)


def revoke_keys_of_owner(*, actor: Actor, owner_id: UserId, reason: str, now: datetime) -> int:
    """Revoke all keys of a member, and return how many were revoked.

    Operations that end a membership call this. Must run inside the tenant's scope, after
    mark_snapshot_stale has locked the tenant.
    """
    keys = ApiKey.objects.filter(
        tenant_id=actor.tenant_id, owner_id=uuid.UUID(owner_id), revoked_at=None
    )
    lookup_ids = list(keys.order_by("id").values_list("lookup_id", flat=True))
    keys.update(revoked_at=now)
    for lookup_id in lookup_ids:
        _record_revocation(actor, LookupId(lookup_id), reason, now)
    return len(lookup_ids)


def _record_revocation(actor: Actor, lookup_id: LookupId, reason: str, now: datetime) -> None:
    record_change(
        actor=actor,
        action="key.revoked",
        target=f"key:{lookup_id}",
        change=({"revoked_at": None}, {"revoked_at": now.isoformat()}),
        reason=reason,
        now=now,
    )


def _check_rotation(
    actor: Actor, lookup_id: LookupId, rotation: KeyRotation, now: datetime
) -> None:
    """Check the options of a rotation. Raises Forbidden, InvalidValue."""
    require_lookup_id(lookup_id)
    if actor.key == lookup_id:
        # Otherwise a thief of the key could lock out its users and use it for longer.
        raise Forbidden("A key cannot rotate itself. Use another key, or sign in.")
    if not timedelta(0) <= rotation.overlap <= MAX_OVERLAP:
        raise InvalidValue(
            "overlap_hours",
            "The old secret can stay valid for at most {most} h.",
            most=_MAX_OVERLAP_HOURS,
        )
    check_expiry(rotation.expires_at, now)


def _find_rotatable_key(actor: Actor, lookup_id: LookupId, now: datetime) -> ApiKey:
    """Return the row of a key that can be rotated. Raises NotFound, Conflict."""
    key = find_key(actor=actor, lookup_id=lookup_id, now=now)
    if key.state is not KeyState.ACTIVE:
        raise Conflict("You can rotate only active keys.")
    if key.is_playground:  # create_playground_key rotates it
        raise Conflict(
            "You cannot rotate the playground's key. Start the playground again to get a new one."
        )
    return ApiKey.objects.get(tenant_id=actor.tenant_id, lookup_id=lookup_id)

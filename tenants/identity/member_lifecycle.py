"""Operations that change and end memberships. A tenant that has an owner keeps at least one."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict
from tenants.base.permissions import Permission, Role
from tenants.base.validation.text import parse_reason
from tenants.identity.api_keys.operations import revoke_keys_of_owner
from tenants.identity.api_keys.queries import KeySummary
from tenants.identity.api_keys.unowned import summarize_keys_shown_to
from tenants.identity.invitations.operations import revoke_invitations_by
from tenants.identity.members.queries import find_member
from tenants.identity.members.scim_sync import sync_scim_active
from tenants.identity.members.sessions import end_sessions_unless_member
from tenants.models import Membership, TeamMembership
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.privacy.consent_lifecycle import end_consent
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow, find_membership


@dataclass(frozen=True, slots=True)
class MembershipChange:
    member: MemberRow
    unowned_keys: KeySummary  # unowned keys that were shown to the member (api_keys.unowned)


def change_role(
    *, actor: Actor, user_id: UserId, role: Role, reason: str, now: datetime
) -> MembershipChange:
    """Change a member's role.

    Raises Forbidden, InvalidValue, NotFound, and Conflict if the tenant would have no owner.
    """
    actor.require(Permission.WRITE_MEMBERS)
    reason = parse_reason(reason)
    with tenant_scope(actor.tenant_id):
        old_role = _lock_and_check_membership(actor, user_id, new_role=role)
        if old_role is not role:
            Membership.objects.filter(tenant_id=actor.tenant_id, user_id=user_id).update(role=role)
            # The member may have lost the permission to invite.
            revoke_invitations_by(actor=actor, user_id=user_id, now=now)
            _record_change(actor, "member.role_changed", user_id, (old_role, role), reason, now)
        member = find_member(actor=actor, user_id=user_id)
        return MembershipChange(
            member, summarize_keys_shown_to(actor=actor, user_id=user_id, now=now)
        )


def remove_member(*, actor: Actor, user_id: UserId, reason: str, now: datetime) -> KeySummary:
    """Remove a member, who may be the actor. Return the unowned keys that the member was shown.

    These keys stay valid. The member's own keys are revoked, and gateways reject them within a
    second. SCIM adds a removed member again only when the identity provider reports the user as
    active again.

    Raises Forbidden, InvalidValue, NotFound, and Conflict if the tenant would have no owner.
    """
    # Each member may leave, because all roles have READ_TENANT.
    actor.require(Permission.READ_TENANT if user_id == actor.user_id else Permission.WRITE_MEMBERS)
    actor.require_open()  # READ_TENANT is allowed while the tenant is closing, but leaving is not
    reason = parse_reason(reason)
    with tenant_scope(actor.tenant_id):
        old_role = _lock_and_check_membership(actor, user_id, new_role=None)
        end_membership(actor=actor, user_id=user_id, now=now)
        unowned_keys = summarize_keys_shown_to(actor=actor, user_id=user_id, now=now)
        _record_change(actor, "member.removed", user_id, (old_role, None), reason, now)
    return unowned_keys


def end_membership(*, actor: Actor, user_id: UserId, now: datetime) -> None:
    """End a membership, and all that depends on it: teams, invitations, consent and own keys.

    If it was the user's last membership, the user's sessions end, too. The caller checks
    permissions, opens the tenant's scope, locks the tenant's row and records the change.
    """
    Membership.objects.filter(tenant_id=actor.tenant_id, user_id=user_id, ended_at=None).update(
        ended_at=now
    )
    TeamMembership.objects.filter(tenant_id=actor.tenant_id, user_id=user_id).delete()
    sync_scim_active(tenant_id=actor.tenant_id, user_id=user_id, active=False, now=now)
    end_sessions_unless_member(user_id=user_id)
    revoke_invitations_by(actor=actor, user_id=user_id, now=now)
    end_consent(actor=actor, user_id=user_id, now=now)
    revoke_keys_of_owner(
        actor=actor, owner_id=user_id, reason="The owner's membership ended.", now=now
    )


def _lock_and_check_membership(actor: Actor, user_id: UserId, *, new_role: Role | None) -> Role:
    """Lock the tenant, check that the actor may make the change, and return the member's old role.

    `new_role` is None if the membership ends. Raises Forbidden, NotFound, Conflict.
    """
    # Locks the tenant, so that two owners who leave at the same time cannot both succeed.
    mark_snapshot_stale(tenant_id=actor.tenant_id)
    old_role = Role(find_membership(tenant_id=actor.tenant_id, user_id=user_id).role)
    is_leaving = new_role is None and user_id == actor.user_id
    if Role.OWNER in (old_role, new_role) and not is_leaving:
        actor.require(Permission.WRITE_OWNERS)
    if old_role is Role.OWNER and new_role is not Role.OWNER:
        require_another_owner(actor, user_id)
    return old_role


def require_another_owner(actor: Actor, user_id: UserId) -> None:
    """Check that the tenant has another owner. Raises Conflict."""
    owners = Membership.objects.filter(
        tenant_id=actor.tenant_id, role=Role.OWNER, ended_at=None
    ).exclude(user_id=uuid.UUID(user_id))
    if not owners.exists():
        raise Conflict("This is the last owner. Make another member an owner first.")


def _record_change(
    actor: Actor,
    action: str,
    user_id: UserId,
    roles: tuple[Role, Role | None],  # before and after; None: the membership has ended
    reason: str,
    now: datetime,
) -> None:
    before, after = (_to_change_fields(role) for role in roles)
    record_change(
        actor=actor,
        action=action,
        target=f"user:{user_id}",
        change=(before, after),
        reason=reason,
        now=now,
    )


def _to_change_fields(role: Role | None) -> ChangeFields | None:
    return None if role is None else {"role": role.value}

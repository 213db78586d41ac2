"""Changes who is a member and as what. A tenant that has an owner keeps one."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict
from tenants.base.permissions import Permission, Role
from tenants.base.text_validation import parse_reason
from tenants.identity.api_keys.operations import revoke_keys_of
from tenants.identity.api_keys.queries import KeySummary
from tenants.identity.api_keys.unowned import find_keys_shown_to
from tenants.identity.invitations.operations import revoke_invitations_by
from tenants.identity.members.queries import find_member
from tenants.identity.members.scim_sync import sync_scim_active
from tenants.identity.members.sessions import end_sessions
from tenants.models import Membership, TeamMembership
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.privacy.consent_lifecycle import end_consent
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow, find_membership


@dataclass(frozen=True, slots=True)
class MembershipChange:
    member: MemberRow
    left_keys: KeySummary  # that he was shown and may make no more; they go on


def change_role(
    *, actor: Actor, user_id: UserId, role: Role, reason: str, now: datetime
) -> MembershipChange:
    """Raises Forbidden, Invalid, NotFound, and Conflict for the last owner."""
    actor.require(Permission.WRITE_MEMBERS)
    reason = parse_reason(reason)
    with tenant_scope(actor.tenant_id):
        held = _hold(actor, user_id, wanted=role)
        if held is not role:
            Membership.objects.filter(tenant_id=actor.tenant_id, user_id=user_id).update(role=role)
            # What he invited others to, he may have no right to any more.
            revoke_invitations_by(actor=actor, user_id=user_id, now=now)
            _record(actor, "member.role_changed", user_id, (held, role), reason, now)
        member = find_member(actor=actor, user_id=user_id)
        return MembershipChange(member, find_keys_shown_to(actor=actor, user_id=user_id, now=now))


def remove_member(*, actor: Actor, user_id: UserId, reason: str, now: datetime) -> KeySummary:
    """His keys are revoked with it: gateways refuse them within a second. Anybody may leave. The
    keys that he was shown and that are not his own go on, and are in the answer. Who came by SCIM
    stays away until his identity provider says anew that he is active.

    Raises Forbidden, Invalid, NotFound, and Conflict for the last owner.
    """
    actor.require(Permission.READ_TENANT if user_id == actor.user_id else Permission.WRITE_MEMBERS)
    actor.require_open()
    reason = parse_reason(reason)
    with tenant_scope(actor.tenant_id):
        held = _hold(actor, user_id, wanted=None)
        end_membership(actor=actor, user_id=user_id, now=now)
        left_keys = find_keys_shown_to(actor=actor, user_id=user_id, now=now)
        _record(actor, "member.removed", user_id, (held, None), reason, now)
    return left_keys


def end_membership(*, actor: Actor, user_id: UserId, now: datetime) -> None:
    """The rows alone, inside the tenant's scope and with its row locked."""
    Membership.objects.filter(tenant_id=actor.tenant_id, user_id=user_id, ended_at=None).update(
        ended_at=now
    )
    TeamMembership.objects.filter(tenant_id=actor.tenant_id, user_id=user_id).delete()
    sync_scim_active(tenant_id=actor.tenant_id, user_id=user_id, active=False, now=now)
    end_sessions(user_id=user_id)
    revoke_invitations_by(actor=actor, user_id=user_id, now=now)
    end_consent(actor=actor, user_id=user_id, now=now)
    revoke_keys_of(actor=actor, owner_id=user_id, reason="The owner's membership ended.", now=now)


def _hold(actor: Actor, user_id: UserId, *, wanted: Role | None) -> Role:
    """The member's role, which stays as it is until the transaction ends; None wants him gone.

    Raises Forbidden, NotFound, Conflict.
    """
    # It locks the tenant: two owners cannot both be the last one to leave.
    mark_snapshot_stale(tenant_id=actor.tenant_id)
    held = Role(find_membership(tenant_id=actor.tenant_id, user_id=user_id).role)
    is_leaving = wanted is None and user_id == actor.user_id
    if Role.OWNER in (held, wanted) and not is_leaving:
        actor.require(Permission.WRITE_OWNERS)
    if held is Role.OWNER and wanted is not Role.OWNER:
        require_another_owner(actor, user_id)
    return held


def require_another_owner(actor: Actor, user_id: UserId) -> None:
    """Raises Conflict."""
    owners = Membership.objects.filter(
        tenant_id=actor.tenant_id, role=Role.OWNER, ended_at=None
    ).exclude(user_id=uuid.UUID(user_id))
    if not owners.exists():
        raise Conflict("This is the last owner. Make another member an owner first.")


def _record(  # one entry's facts
    actor: Actor,
    action: str,
    user_id: UserId,
    roles: tuple[Role, Role | None],
    reason: str,
    now: datetime,
) -> None:
    before, after = (_facts(role) for role in roles)
    record_change(
        actor=actor,
        action=action,
        target=f"user:{user_id}",
        change=(before, after),
        reason=reason,
        now=now,
    )


def _facts(role: Role | None) -> ChangeFields | None:
    return None if role is None else {"role": role.value}

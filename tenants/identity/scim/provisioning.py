"""Synchronizes a tenant's members with the SCIM users and groups of its identity provider.

A SCIM user is bound to an account only if its e-mail address is in a domain that the tenant has
verified. A SCIM token can therefore neither take over other users nor find out whether they exist.
Groups never change an owner's role.
"""

import uuid
from datetime import datetime
from typing import Final

import structlog
from django.db import IntegrityError, transaction

from caret.foundation.ids import UserId
from tenants.base.errors import Conflict, DomainError, InvalidValue
from tenants.base.permissions import Role
from tenants.base.validation.email_domains import get_email_domain
from tenants.billing.budgets.alert_delivery import anonymize_recipients
from tenants.billing.budgets.limits import require_budget_limit_per_user
from tenants.identity.invitations.operations import revoke_invitations_by
from tenants.identity.member_lifecycle import end_membership, require_another_owner
from tenants.identity.members.operations import insert_membership
from tenants.identity.scim.resources import User as ScimUserResource
from tenants.identity.scim.resources import get_full_name
from tenants.models import (
    AlertDelivery,
    Domain,
    Invitation,
    Membership,
    ScimGroup,
    ScimGroupMember,
    ScimUser,
    TeamMembership,
    User,
)
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

logger = structlog.get_logger(__name__)

# If a member's groups set several roles, the first of these roles counts.
_ROLES_BY_PRIORITY: Final = (Role.ADMINISTRATOR, Role.AUDITOR, Role.BILLING, Role.DEVELOPER)
_MAX_NAME_CHARS: Final = 120  # the length of the column User.name


def sync_member(*, actor: Actor, row: ScimUser, now: datetime, groups_decide: bool = False) -> None:
    """Change the account, membership, teams and role of a SCIM user so that they match its row.

    A second call changes nothing. Must run inside the tenant's scope, with the tenant's row locked.
    `groups_decide` matters only if no group of the tenant sets a role. False: the member keeps the
    current role. True: a group has set that role before, so the role becomes developer. Raises
    Conflict, InvalidValue.
    """
    _sync_account(actor, row, now)
    if row.user_id is None:
        return
    user_id = UserId(str(row.user_id))
    membership = _find_membership(actor, row.user_id)
    if not row.active:
        if membership is not None:
            _end_membership(actor, membership, now)
        return
    if membership is None:
        insert_membership(tenant_id=actor.tenant_id, user_id=user_id, role=Role.DEVELOPER, now=now)
        _record_change(actor, "member.added", user_id, (None, Role.DEVELOPER), now)
    group_ids = _find_group_ids(actor, row)
    _sync_teams(actor, row.user_id, group_ids, now)
    _sync_role(actor, row.user_id, group_ids, now, groups_decide=groups_decide)


def sync_domain_members(*, actor: Actor, name: str, now: datetime) -> None:
    """Synchronize the SCIM users whose addresses are in the domain `name`, which is now verified.

    Must run inside the tenant's scope, with the tenant's row locked. A user who cannot be
    synchronized is logged and skipped.
    """
    rows = ScimUser.objects.filter(tenant_id=actor.tenant_id, email__endswith=f"@{name}")
    for row in rows.order_by("id"):
        try:
            with transaction.atomic():
                sync_member(actor=actor, row=row, now=now)
        except DomainError as error:
            # For example, two SCIM users have the same address. The identity provider gets the
            # error when it next changes one of them.
            logger.warning(
                "scim.member_not_synchronized", tenant_id=actor.tenant_id, reason=error.code
            )


def deprovision_member(*, actor: Actor, row: ScimUser, now: datetime) -> None:
    """End the membership of a SCIM user, if there is one. Raises Conflict for the last owner."""
    if row.user_id is None:
        return
    if (membership := _find_membership(actor, row.user_id)) is not None:
        _end_membership(actor, membership, now)


def _find_membership(actor: Actor, user_id: uuid.UUID) -> Membership | None:
    memberships = Membership.objects.filter(
        tenant_id=actor.tenant_id, user_id=user_id, ended_at=None
    )
    return memberships.order_by("user_id").first()


def _end_membership(actor: Actor, membership: Membership, now: datetime) -> None:
    user_id, role = UserId(str(membership.user_id)), Role(membership.role)
    if role is Role.OWNER:
        require_another_owner(actor, user_id)
    end_membership(actor=actor, user_id=user_id, now=now)
    _record_change(actor, "member.removed", user_id, (role, None), now)


def _sync_account(actor: Actor, row: ScimUser, now: datetime) -> None:
    """Bind the SCIM user to an account, or update the address and name of its account.

    If the address is not in a verified domain, the user stays unbound and the name unchanged.
    Raises Conflict, and InvalidValue for a change from or to an address outside such domains.
    """
    is_in_verified_domain = _is_in_verified_domain(actor, row.email)
    if row.user_id is None:
        if is_in_verified_domain:
            _bind_to_account(actor, row, now)
        return
    user = User.objects.get(id=row.user_id)
    if user.email != row.email:
        if not is_in_verified_domain or not _is_in_verified_domain(actor, user.email):
            raise InvalidValue(
                "emails", "This e-mail address is not in one of your verified domains."
            )
        _change_address(actor, user, row.email, now)
    name = get_full_name(ScimUserResource.model_validate(row.document))[:_MAX_NAME_CHARS]
    if name and name != user.name and is_in_verified_domain:
        User.objects.filter(id=user.id).update(name=name)


def _bind_to_account(actor: Actor, row: ScimUser, now: datetime) -> None:
    """Bind the SCIM user to the account with its address. Create the account if it is missing.

    Raises Conflict if another SCIM user of the tenant is bound to the account.
    """
    user = User.objects.filter(email=row.email).order_by("id").first()
    if user is None:
        name = get_full_name(ScimUserResource.model_validate(row.document))[:_MAX_NAME_CHARS]
        user = User(email=row.email, name=name, created_at=now)
        user.set_unusable_password()
        user.save(force_insert=True)
    other_scim_users = ScimUser.objects.filter(tenant_id=actor.tenant_id, user_id=user.id)
    if other_scim_users.exclude(id=row.id).exists():
        raise Conflict("Another user already has this address.")
    if not Membership.objects.filter(tenant_id=actor.tenant_id, user_id=user.id).exists():
        # The foreign key needs a membership. This one has ended; sync_member reactivates it if the
        # SCIM user is active.
        Membership.objects.create(
            tenant_id=actor.tenant_id,
            user_id=user.id,
            role=Role.DEVELOPER,
            created_at=now,
            ended_at=now,
        )
    row.user_id = user.id
    ScimUser.objects.filter(tenant_id=actor.tenant_id, id=row.id).update(user_id=user.id)


def _change_address(actor: Actor, user: User, email: str, now: datetime) -> None:
    """Change the e-mail address of the account, and in all rows of the tenant that contain it.

    An erasure finds only rows with the current address. Raises Conflict.
    """
    try:
        with transaction.atomic():
            User.objects.filter(id=user.id).update(email=email)
    except IntegrityError as error:
        raise Conflict("Another user already has this address.") from error
    invitations = Invitation.objects.filter(tenant_id=actor.tenant_id, email=user.email)
    # Another person may now own the old mailbox, which contains the invitation's link.
    invitations.filter(accepted_at=None, revoked_at=None).update(revoked_at=now)
    invitations.update(email=email)
    deliveries = AlertDelivery.objects.filter(tenant_id=actor.tenant_id)
    old_deliveries = deliveries.filter(address=user.email)
    # An alert has at most one delivery per address.
    duplicates = old_deliveries.filter(
        alert_id__in=deliveries.filter(address=email).values("alert_id")
    )
    anonymize_recipients(duplicates)
    old_deliveries.update(address=email)


def _is_in_verified_domain(actor: Actor, email: str) -> bool:
    """Return whether the address is in a domain that the tenant has verified."""
    domain = get_email_domain(email)
    return (
        bool(domain)
        and Domain.objects.filter(
            tenant_id=actor.tenant_id, name=domain, verified_at__isnull=False
        ).exists()
    )


def _sync_teams(actor: Actor, user_id: uuid.UUID, new_ids: set[uuid.UUID], now: datetime) -> None:
    """Make the user a member of exactly these teams among those that SCIM manages.

    Memberships in other teams stay unchanged. Raises Conflict if the user's teams then have too
    many hard budgets.
    """
    managed_ids = ScimGroup.objects.filter(tenant_id=actor.tenant_id).values_list(
        "team_id", flat=True
    )
    team_memberships = TeamMembership.objects.filter(tenant_id=actor.tenant_id, user_id=user_id)
    old_ids = set(team_memberships.values_list("team_id", flat=True))
    team_memberships.filter(team_id__in=set(managed_ids) - new_ids).delete()
    TeamMembership.objects.bulk_create(
        TeamMembership(tenant_id=actor.tenant_id, team_id=team_id, user_id=user_id, created_at=now)
        for team_id in sorted(new_ids - old_ids)
    )
    if new_ids - old_ids:
        require_budget_limit_per_user(actor.tenant_id)


def _sync_role(
    actor: Actor,
    user_id: uuid.UUID,
    group_ids: set[uuid.UUID],
    now: datetime,
    *,
    groups_decide: bool,
) -> None:
    """Set the role that the member's groups set, or developer if they set none.

    Owners stay owners. If no group of the tenant sets a role, nothing changes unless
    `groups_decide`.
    """
    groups_with_role = ScimGroup.objects.filter(tenant_id=actor.tenant_id).exclude(role="")
    roles = dict(groups_with_role.values_list("team_id", "role"))
    if not roles and not groups_decide:
        return
    group_roles = {roles[team_id] for team_id in group_ids & roles.keys()}
    new_role = next(
        (role for role in _ROLES_BY_PRIORITY if role.value in group_roles), Role.DEVELOPER
    )
    membership = Membership.objects.filter(tenant_id=actor.tenant_id, user_id=user_id)
    old_role = Role(membership.get().role)
    if old_role in (new_role, Role.OWNER):
        return
    membership.update(role=new_role)
    member_id = UserId(str(user_id))
    revoke_invitations_by(actor=actor, user_id=member_id, now=now)
    _record_change(actor, "member.role_changed", member_id, (old_role, new_role), now)


def _find_group_ids(actor: Actor, row: ScimUser) -> set[uuid.UUID]:
    rows = ScimGroupMember.objects.filter(tenant_id=actor.tenant_id, scim_user_id=row.id)
    return set(rows.values_list("team_id", flat=True))


def _record_change(
    actor: Actor,
    action: str,
    user_id: UserId,
    roles: tuple[Role | None, Role | None],
    now: datetime,
) -> None:
    before, after = roles
    record_change(
        actor=actor,
        action=action,
        target=f"user:{user_id}",
        change=(
            None if before is None else {"role": before.value},
            None if after is None else {"role": after.value},
        ),
        reason="Changed through SCIM.",
        now=now,
    )

"""New owners of a tenant: an owner transfers the ownership, or an operator appoints an owner."""

from datetime import datetime
from typing import Final

from django.conf import settings
from django.utils.translation import gettext_noop

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.permissions import Permission, Role
from tenants.base.validation.text import is_storable, parse_reason
from tenants.identity.member_lifecycle import change_role
from tenants.identity.members.status_mail import mail_addresses
from tenants.models import Membership, Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import find_membership, list_members

_NO_MEMBER: Final = gettext_noop("No member of this tenant has the address {email}.")
# Texts of e-mails.
_TRANSFERRED: Final = """{new} is now an owner of {tenant}.
{old} is now an administrator.

Time: {when:%Y-%m-%d %H:%M} UTC
Reason: {reason}

If you did not expect this, contact the operator of your Caret installation.
{console}/members"""
_APPOINTED: Final = """An operator of Caret made {new} an owner of {tenant}.
Other owners stay owners.

Time: {when:%Y-%m-%d %H:%M} UTC
Reason: {reason}

If you did not expect this, contact the operator of your Caret installation.
{console}/members"""


def transfer_ownership(*, actor: Actor, user_id: UserId, reason: str, now: datetime) -> None:
    """Make another member an owner instead of the actor, who becomes an administrator.

    Both get an e-mail. Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require(Permission.WRITE_OWNERS)
    if actor.user_id is None or actor.user_id == user_id:
        raise Conflict("Choose another member as the new owner.")
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        if find_membership(tenant_id=actor.tenant_id, user_id=actor.user_id).role != Role.OWNER:
            raise Conflict("You are no longer an owner of this tenant.")
        # The new owner comes first, because a tenant cannot be without an owner.
        new = change_role(actor=actor, user_id=user_id, role=Role.OWNER, reason=reason, now=now)
        old = change_role(
            actor=actor, user_id=actor.user_id, role=Role.ADMINISTRATOR, reason=reason, now=now
        )
        text = _TRANSFERRED.format(
            new=new.member.email,
            old=old.member.email,
            tenant=_read_tenant_name(actor),
            when=now,
            reason=parse_reason(reason) or "not given",
            console=settings.CONSOLE_URL,
        )
        mail_addresses(
            tenant_id=actor.tenant_id,
            emails=[new.member.email, old.member.email],
            subject=f"{_read_tenant_name(actor)} has a new owner",
            text=text,
        )


def appoint_owner(*, actor: Actor, email: str, reason: str, now: datetime) -> None:
    """Make a member an owner, as an operator, for example if the only owner cannot be reached.

    `email` is the member's address. All owners get an e-mail. Raises Forbidden, InvalidValue,
    NotFound, Conflict.
    """
    actor.require_operator()
    email, reason = email.strip().lower(), parse_reason(reason)
    if not is_storable(email):
        raise InvalidValue("email", "This is not a valid e-mail address.")
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        try:
            # At most one row: e-mail addresses are unique.
            membership = Membership.objects.get(
                tenant_id=actor.tenant_id, user__email=email, ended_at=None
            )
        except Membership.DoesNotExist as error:
            raise NotFound(_NO_MEMBER, email=email) from error
        if membership.role == Role.OWNER:
            raise Conflict("{email} is already an owner.", email=email)
        # change_role would require the permission to change owners, which no operator has.
        Membership.objects.filter(tenant_id=actor.tenant_id, user_id=membership.user_id).update(
            role=Role.OWNER
        )
        record_change(
            actor=actor,
            action="member.role_changed",
            target=f"user:{membership.user_id}",
            change=({"role": membership.role}, {"role": Role.OWNER.value}),
            reason=reason,
            now=now,
        )
        owners = [row for row in list_members(tenant_id=actor.tenant_id) if row.role is Role.OWNER]
        mail_addresses(
            tenant_id=actor.tenant_id,
            emails=[row.email for row in owners],
            subject=f"{_read_tenant_name(actor)} has a new owner",
            text=_APPOINTED.format(
                new=email,
                tenant=_read_tenant_name(actor),
                when=now,
                reason=reason or "not given",
                console=settings.CONSOLE_URL,
            ),
        )


def _read_tenant_name(actor: Actor) -> str:
    return Tenant.objects.values_list("name", flat=True).get(id=actor.tenant_id)

"""Operations that create, revoke and accept invitations.

The token of an invitation is sent by e-mail, and only its digest is stored. An operator who invites
an owner also sees the token.
"""

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.bearer_tokens import (
    BearerTokenKind,
    TenantToken,
    create_token,
    parse_token,
    token_digest,
)
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Permission, Role
from tenants.identity.invitations.allowance import require_allowance
from tenants.identity.invitations.queries import InvitationView, find_invitation
from tenants.identity.members.operations import insert_membership
from tenants.identity.teams.operations import add_team_member, require_changeable_team
from tenants.models import Invitation, Membership, Tenant, User
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor, build_system_actor

LIFETIME: Final = timedelta(days=7)  # of an open invitation
_MAX_EMAIL_CHARS: Final = 254
_UNKNOWN: Final = gettext_noop(
    "This invitation was already used or revoked, or it has expired. Ask for a new one."
)

# Sends a token to an e-mail address, and returns False if sending failed.
Mailer = Callable[[str, TenantToken], bool]


@dataclass(frozen=True, slots=True)
class InvitationBearer:
    """The user who presents a token, for the audit log."""

    user_id: UserId
    address: str | None  # IP address; None: not a network request
    request_id: str  # "" outside HTTP


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """The details of an open invitation that its bearer sees."""

    email: str
    tenant_id: TenantId
    tenant_name: str


def create_invitation(
    *,
    actor: Actor,
    email: str,
    role: Role,
    mailer: Mailer,
    now: datetime,
    team_id: uuid.UUID | None = None,
) -> InvitationView:
    """Create an invitation, and send it after the commit.

    Earlier open invitations of the same e-mail address are revoked. The invited user also joins the
    team `team_id`; None: no team. If the caller has its own transaction, the function returns
    before the e-mail is sent.

    Raises Forbidden, InvalidValue, NotFound, Conflict, LimitReached.
    """
    actor.require(Permission.WRITE_MEMBERS)
    if team_id is not None:
        actor.require(Permission.WRITE_TEAMS)
        require_changeable_team(actor=actor, team_id=team_id)
    if role is Role.OWNER:
        actor.require(Permission.WRITE_OWNERS)
    email = _read_email(email)
    token = create_token(BearerTokenKind.INVITATION, actor.tenant_id)
    with tenant_scope(actor.tenant_id):
        invitation_id = _store_invitation(actor, email, role, token, now, team_id)
        # The e-mail is sent only after the commit, so that its token always exists. If sending
        # fails, the invitation stays.
        transaction.on_commit(
            lambda: _send_mail(invitation_id, email, token, mailer, now), robust=True
        )
    return find_invitation(actor=actor, invitation_id=invitation_id, now=now)


def create_owner_invitation(
    *, actor: Actor, email: str, mailer: Mailer, now: datetime
) -> TenantToken:
    """Invite an owner, as an operator, and return the token.

    The invitation is sent after the commit. If the tenant has no owner, all earlier invitations
    with the role OWNER are revoked, because an address may have been wrong. Raises Forbidden,
    InvalidValue, NotFound, Conflict, LimitReached.
    """
    actor.require_operator()
    email = _read_email(email, field="owner_email")
    token = create_token(BearerTokenKind.INVITATION, actor.tenant_id)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        owners = Membership.objects.filter(tenant_id=actor.tenant_id, role=Role.OWNER)
        if not owners.filter(ended_at=None).exists():
            _revoke_invitations(actor, Invitation.objects.filter(role=Role.OWNER), now)
        invitation_id = _store_invitation(actor, email, Role.OWNER, token, now)
        transaction.on_commit(
            lambda: _send_mail(invitation_id, email, token, mailer, now), robust=True
        )
    return token


def revoke_invitation(*, actor: Actor, invitation_id: uuid.UUID, now: datetime) -> InvitationView:
    """Revoke an invitation. Nothing changes if it was accepted or revoked before.

    Raises Forbidden, NotFound.
    """
    actor.require(Permission.WRITE_MEMBERS)
    with tenant_scope(actor.tenant_id):
        # This locks the tenant. All operations lock it first, so that they cannot deadlock.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        view = find_invitation(actor=actor, invitation_id=invitation_id, now=now)
        if view.role is Role.OWNER:
            actor.require(Permission.WRITE_OWNERS)
        _revoke_invitations(actor, Invitation.objects.filter(id=invitation_id), now)
        return find_invitation(actor=actor, invitation_id=invitation_id, now=now)


def revoke_invitations_by(*, actor: Actor, user_id: UserId, now: datetime) -> None:
    """Revoke the invitations that a member has sent.

    Call this when the membership ends or the role changes. Otherwise the member could join again
    through an invitation to another address. Must run inside the tenant's scope.
    """
    _revoke_invitations(actor, Invitation.objects.filter(invited_by_id=uuid.UUID(user_id)), now)


def accept_invitation(*, bearer: InvitationBearer, text: str, now: datetime) -> TenantId:
    """Make the bearer a member, if the invitation was sent to the bearer's e-mail address.

    `text` is the text of the token, which works once. Raises NotFound, Forbidden for another
    address, and Conflict if the user is a member already or is being erased.
    """
    token = _require_token(text)
    user = User.objects.get(id=bearer.user_id)
    with tenant_scope(token.tenant_id):
        _require_active(token.tenant_id)
        # Locks the tenant, so that roles and invitations cannot change until the commit.
        mark_snapshot_stale(tenant_id=token.tenant_id)
        invitation = _find_open(token, now)
        if invitation.email != user.email:
            raise Forbidden(
                "This invitation was sent to another e-mail address. Sign in with that address."
            )
        role = Role(invitation.role)
        _mark_accepted(invitation, now)
        insert_membership(tenant_id=token.tenant_id, user_id=bearer.user_id, role=role, now=now)
        record_change(
            actor=Actor(
                tenant_id=token.tenant_id,
                user_id=bearer.user_id,
                role=role,
                address=bearer.address,
                request_id=bearer.request_id,
            ),
            action="member.invitation_accepted",
            target=f"user:{bearer.user_id}",
            change=(None, {"role": role.value, "invitation_id": str(invitation.id)}),
            now=now,
        )
        if invitation.team_id is not None:
            _join_team(token.tenant_id, invitation.team_id, bearer.user_id, now)
    return token.tenant_id


def _join_team(tenant_id: TenantId, team_id: uuid.UUID, user_id: UserId, now: datetime) -> None:
    """Add the user to the team, if that is still possible.

    The team may have been deleted, or be managed through SCIM. In the team, the user might also be
    subject to more hard budgets of teams than the limit allows.
    """
    with suppress(Conflict, NotFound):
        add_team_member(
            actor=build_system_actor(tenant_id), team_id=team_id, user_id=user_id, now=now
        )


def find_open_invitation(*, text: str, now: datetime) -> OpenInvitation:
    """Return the details of the open invitation with this token text. Raises NotFound."""
    token = _require_token(text)
    with tenant_scope(token.tenant_id):
        _require_active(token.tenant_id)
        email = _find_open(token, now).email
        name = Tenant.objects.get(id=token.tenant_id).name
    return OpenInvitation(email, token.tenant_id, name)


def _store_invitation(
    actor: Actor,
    email: str,
    role: Role,
    token: TenantToken,
    now: datetime,
    team_id: uuid.UUID | None = None,
) -> uuid.UUID:
    """Insert an invitation, and revoke open ones of the same address. Return its ID.

    Raises NotFound, Conflict, LimitReached.
    """
    # This locks the tenant, so that concurrent calls cannot exceed the allowance.
    mark_snapshot_stale(tenant_id=actor.tenant_id)
    if not _is_active(actor.tenant_id):
        raise Conflict("You cannot invite users to a tenant that is not active.")
    members = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at=None)
    if members.filter(user__email=email).exists():
        raise Conflict("This user is already a member.")
    require_allowance(actor.tenant_id, email, now)
    _revoke_invitations(actor, Invitation.objects.filter(email=email), now)
    row = Invitation.objects.create(
        tenant_id=actor.tenant_id,
        email=email,
        role=role,
        team_id=team_id,
        digest=token_digest(token),
        invited_by_id=actor.user_id,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    record_change(
        actor=actor,
        action="invitation.created",
        target=f"invitation:{row.id}",
        # Without the address: it is personal data, and an erasure does not change audit entries.
        change=(None, {"role": role.value}),
        now=now,
    )
    return row.id


def _send_mail(
    invitation_id: uuid.UUID, email: str, token: TenantToken, mailer: Mailer, now: datetime
) -> None:
    if mailer(email, token):
        with tenant_scope(token.tenant_id):
            Invitation.objects.filter(id=invitation_id).update(mailed_at=now)


def _revoke_invitations(actor: Actor, invitations: QuerySet[Invitation], now: datetime) -> None:
    """Revoke those of the invitations that belong to the actor's tenant and are open or expired."""
    unused_invitations = invitations.filter(
        tenant_id=actor.tenant_id, accepted_at=None, revoked_at=None
    )
    for invitation_id in list(unused_invitations.values_list("id", flat=True)):
        if not unused_invitations.filter(id=invitation_id).update(revoked_at=now):
            continue  # accepted concurrently
        record_change(
            actor=actor,
            action="invitation.revoked",
            target=f"invitation:{invitation_id}",
            change=({"revoked_at": None}, {"revoked_at": now.isoformat()}),
            now=now,
        )


def _require_token(text: str) -> TenantToken:
    token = parse_token(BearerTokenKind.INVITATION, text)
    if token is None:
        raise NotFound(_UNKNOWN)
    return token


def _require_active(tenant_id: TenantId) -> None:
    """Check that users can join the tenant. The error does not reveal the tenant's status."""
    if not _is_active(tenant_id):
        raise NotFound(_UNKNOWN)


def _is_active(tenant_id: TenantId) -> bool:
    return Tenant.objects.filter(id=tenant_id, status=TenantStatus.ACTIVE).exists()


def _find_open(token: TenantToken, now: datetime) -> Invitation:
    """Return the open invitation of a token. Raises NotFound."""
    try:
        return Invitation.objects.get(
            tenant_id=token.tenant_id,
            digest=token_digest(token),
            accepted_at=None,
            revoked_at=None,
            expires_at__gt=now,
        )
    except Invitation.DoesNotExist as error:
        raise NotFound(_UNKNOWN) from error


def _mark_accepted(invitation: Invitation, now: datetime) -> None:
    """Mark the invitation as accepted. Raises NotFound if a concurrent call was first."""
    open_invitation = Invitation.objects.filter(id=invitation.id, accepted_at=None, revoked_at=None)
    if not open_invitation.update(accepted_at=now):
        raise NotFound(_UNKNOWN)


def _read_email(email: str, *, field: str = "email") -> str:
    """Return the address in lower case. Raises InvalidValue."""
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidValue(field, "This is not a valid e-mail address.") from error
    if len(email) > _MAX_EMAIL_CHARS:
        raise InvalidValue(field, "This is not a valid e-mail address.")
    return email

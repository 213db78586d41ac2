"""Queries of invitations, without their tokens."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Permission, Role
from tenants.models import Invitation
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.erased_users import find_erased_users, get_visible_email


class InvitationState(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class InvitationView:
    id: uuid.UUID
    email: str
    role: Role
    team_id: uuid.UUID | None  # the team that the user also joins; None: no team
    state: InvitationState
    invited_by_email: str | None  # None: the platform, an operator, or an erased user
    created_at: datetime
    expires_at: datetime
    mailed_at: datetime | None  # None: not sent yet, or sending failed


def read_page_of_invitations(
    *, actor: Actor, limit: int, cursor: str | None, now: datetime
) -> Page[InvitationView]:
    """Return a page of invitations, newest first. Two queries. Raises Forbidden, InvalidValue."""
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        invitations = Invitation.objects.filter(tenant_id=actor.tenant_id).select_related(
            "invited_by"
        )
        rows = fetch_page_rows(invitations, limit=limit, after=decode_cursor(cursor))
        erased_ids = find_erased_users(actor.tenant_id, [row.invited_by_id for row in rows])
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, lambda row: _to_view(row, now, erased_ids))


def find_invitation(*, actor: Actor, invitation_id: uuid.UUID, now: datetime) -> InvitationView:
    """Return one invitation. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        try:
            row = Invitation.objects.select_related("invited_by").get(
                tenant_id=actor.tenant_id, id=invitation_id
            )
        except Invitation.DoesNotExist as error:
            raise NotFound("This invitation does not exist.") from error
        return _to_view(row, now, find_erased_users(actor.tenant_id, [row.invited_by_id]))


def _to_view(row: Invitation, now: datetime, erased_ids: frozenset[uuid.UUID]) -> InvitationView:
    return InvitationView(
        id=row.id,
        email=row.email,
        role=Role(row.role),
        team_id=row.team_id,
        state=_compute_state(row, now),
        invited_by_email=get_visible_email(row.invited_by, erased_ids),
        created_at=row.created_at,
        expires_at=row.expires_at,
        mailed_at=row.mailed_at,
    )


def _compute_state(row: Invitation, now: datetime) -> InvitationState:
    if row.accepted_at is not None:
        return InvitationState.ACCEPTED
    if row.revoked_at is not None:
        return InvitationState.REVOKED
    return InvitationState.EXPIRED if row.expires_at <= now else InvitationState.OPEN

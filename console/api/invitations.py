"""Invitations over REST. Their tokens go out by mail and are in no answer: who could read one here
could become somebody else."""

import uuid
from datetime import datetime
from functools import partial
from typing import Annotated

from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import Field

from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer, Body
from console.api.pagination import PageAnswer, Paged
from tenants.base.pagination import Page
from tenants.base.permissions import Permission, Role
from tenants.identity.invitations.email import send_invitation
from tenants.identity.invitations.operations import invite, revoke_invitation
from tenants.identity.invitations.queries import (
    InvitationState,
    InvitationView,
    page_of_invitations,
)
from tenants.identity.members.queries import get_tenant

router = Router(tags=["invitations"])


class Invitation(Answer):
    id: uuid.UUID
    email: str
    role: Role
    state: InvitationState
    invited_by_email: str | None  # null: the platform itself
    created_at: datetime
    expires_at: datetime
    mailed_at: datetime | None  # null: not yet, or it could not be; then invite again


class InvitationPage(PageAnswer):
    rows: list[Invitation]  # newest first


class Invite(
    Body, json_schema_extra={"example": {"email": "ada@example.com", "role": "developer"}}
):
    email: Annotated[str, Field(max_length=254)]
    role: Role = Role.DEVELOPER


@router.get(
    "",
    response=InvitationPage,
    summary="List invitations.",
    openapi_extra=open_to(Permission.READ_MEMBERS),
)
def list_all(request: ApiRequest, page: Query[Paged]) -> Page[InvitationView]:
    return page_of_invitations(
        actor=actor_of(request), limit=page.limit, cursor=page.cursor, now=timezone.now()
    )


@router.post(
    "",
    response={201: Invitation},
    summary="Invite somebody by mail, in place of an earlier invitation of that address.",
    openapi_extra=open_to(Permission.WRITE_MEMBERS),
)
def create(request: ApiRequest, asked: Invite) -> Status[object]:
    actor = actor_of(request)
    invited = invite(
        actor=actor,
        email=asked.email,
        role=asked.role,
        mailer=partial(send_invitation, tenant_name=get_tenant(actor=actor).name),
        now=timezone.now(),
    )
    return Status(201, invited)


@router.post(
    "/{invitation_id}/revoke",
    response=Invitation,
    summary="Take an invitation back.",
    openapi_extra=open_to(Permission.WRITE_MEMBERS),
)
def revoke(request: ApiRequest, invitation_id: uuid.UUID) -> InvitationView:
    return revoke_invitation(
        actor=actor_of(request), invitation_id=invitation_id, now=timezone.now()
    )

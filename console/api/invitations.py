"""Invitations over REST.

The token of an invitation is sent by e-mail only. No response of these endpoints contains it,
because a caller with the token could accept the invitation in place of its recipient.
"""

import uuid
from datetime import datetime
from functools import partial
from typing import Annotated

from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.pagination import Page
from tenants.base.permissions import Permission, Role
from tenants.identity.invitations.email import send_invitation
from tenants.identity.invitations.operations import create_invitation, revoke_invitation
from tenants.identity.invitations.queries import (
    InvitationState,
    InvitationView,
    read_page_of_invitations,
)
from tenants.identity.members.queries import get_tenant

router = Router(tags=["invitations"])


class InvitationResponse(ResponseSchema):
    id: uuid.UUID
    email: str
    role: Role
    state: InvitationState
    invited_by_email: str | None  # null: the inviter is not a user, or was erased
    created_at: datetime
    expires_at: datetime
    mailed_at: datetime | None  # null: the e-mail is not sent yet, or sending failed


class InvitationPage(PageResponse):
    items: Items[InvitationResponse]  # newest first


class InviteRequest(
    RequestSchema, json_schema_extra={"example": {"email": "ada@example.com", "role": "developer"}}
):
    email: Annotated[str, Field(max_length=254)]
    role: Role = Role.DEVELOPER


@router.get(
    "",
    response=InvitationPage,
    summary="List invitations.",
    openapi_extra=document_permissions(Permission.READ_MEMBERS),
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[InvitationView]:
    return read_page_of_invitations(
        actor=actor_of(request), limit=page.limit, cursor=page.cursor, now=timezone.now()
    )


@router.post(
    "",
    response={201: InvitationResponse},
    summary="Invite a person by e-mail; replaces open invitations of the same address.",
    openapi_extra=document_permissions(Permission.WRITE_MEMBERS),
)
def create(request: AuthenticatedRequest, body: InviteRequest) -> Status[object]:
    actor = actor_of(request)
    invitation = create_invitation(
        actor=actor,
        email=body.email,
        role=body.role,
        mailer=partial(send_invitation, tenant_name=get_tenant(actor=actor).name),
        now=timezone.now(),
    )
    return Status(201, invitation)


@router.post(
    "/{invitation_id}/revoke",
    response=InvitationResponse,
    summary="Revoke an invitation.",
    openapi_extra=document_permissions(Permission.WRITE_MEMBERS),
)
def revoke(request: AuthenticatedRequest, invitation_id: uuid.UUID) -> InvitationView:
    return revoke_invitation(
        actor=actor_of(request), invitation_id=invitation_id, now=timezone.now()
    )

"""Members over REST, and the tenant to which they belong."""

import uuid
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from caret.contracts.api_key import KeyKind
from caret.contracts.policy import Isolation
from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import UserId
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.pagination import Page
from tenants.base.permissions import Permission, Role
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.identity.api_keys.queries import KeySummary
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.identity.members.queries import (
    TenantView,
    find_member,
    get_tenant,
    read_page_of_members,
)
from tenants.security.authorization.directory import MemberRow

router = Router(tags=["members"])
tenant_router = Router(tags=["tenant"])

Reason = Annotated[str, Field(max_length=MAX_REASON_CHARS)]  # for the audit log


class TenantResponse(ResponseSchema):
    slug: str
    name: str
    status: TenantStatus
    region: str  # where its data is stored
    isolation: Isolation  # isolation of the prefix cache, as the policy sets it
    created_at: datetime


class MemberResponse(ResponseSchema):
    user_id: uuid.UUID
    email: str
    name: str
    role: Role
    created_at: datetime  # when the membership began


class UnownedKey(ResponseSchema):
    """An active key whose text was shown to a user who may no longer create keys."""

    lookup_id: str
    kind: KeyKind
    name: str


class UnownedKeys(ResponseSchema):
    keys: list[UnownedKey]  # newest first, at most 100
    total: int  # may be more than the length of `keys`


class MembershipChangeResponse(MemberResponse):
    # Keys whose text was shown to the member. Empty if the new role may create keys.
    unowned_keys: UnownedKeys


class RemovedMember(ResponseSchema):
    # Keys whose text was shown to the member. These keys stay valid. The member's own keys are
    # revoked, so they are not in this list.
    unowned_keys: UnownedKeys


class MemberPage(PageResponse):
    items: Items[MemberResponse]  # newest first


class MemberQuery(PageQuery):
    team_id: uuid.UUID | None = None  # only members of this team; null: all members


class ChangeMember(RequestSchema, json_schema_extra={"example": {"role": "auditor"}}):
    role: Role
    reason: Reason = ""


class RemoveMember(
    RequestSchema, json_schema_extra={"example": {"reason": "Has left the company."}}
):
    reason: Reason = ""


@tenant_router.get(
    "",
    response=TenantResponse,
    summary="Get the tenant's status, region and isolation.",
    openapi_extra=document_permissions(Permission.READ_TENANT),
)
def get(request: AuthenticatedRequest) -> TenantView:
    return get_tenant(actor=actor_of(request))


@router.get(
    "",
    response=MemberPage,
    summary="List members of the tenant, or only those of one team.",
    openapi_extra=document_permissions(Permission.READ_MEMBERS),
)
def list_all(request: AuthenticatedRequest, page: Query[MemberQuery]) -> Page[MemberRow]:
    return read_page_of_members(
        actor=actor_of(request), limit=page.limit, cursor=page.cursor, team_id=page.team_id
    )


@router.get(
    "/{user_id}",
    response=MemberResponse,
    summary="Get a member.",
    openapi_extra=document_permissions(Permission.READ_MEMBERS),
)
def find(request: AuthenticatedRequest, user_id: uuid.UUID) -> MemberRow:
    return find_member(actor=actor_of(request), user_id=UserId(str(user_id)))


@router.patch(
    "/{user_id}",
    response=MembershipChangeResponse,
    summary="Change a member's role; only owners can make owners.",
    openapi_extra=document_permissions(Permission.WRITE_MEMBERS),
)
def change(request: AuthenticatedRequest, user_id: uuid.UUID, body: ChangeMember) -> dict[str, Any]:
    change_result = change_role(
        actor=actor_of(request),
        user_id=UserId(str(user_id)),
        role=body.role,
        reason=body.reason,
        now=timezone.now(),
    )
    return asdict(change_result.member) | {"unowned_keys": change_result.unowned_keys}


@router.post(
    "/{user_id}/remove",
    response=RemovedMember,
    summary="Remove a member or yourself; gateways reject the member's own keys within a second.",
    openapi_extra=document_permissions(Permission.WRITE_MEMBERS),
)
def remove(
    request: AuthenticatedRequest, user_id: uuid.UUID, body: RemoveMember | None = None
) -> dict[str, KeySummary]:
    unowned_keys = remove_member(
        actor=actor_of(request),
        user_id=UserId(str(user_id)),
        reason=body.reason if body else "",
        now=timezone.now(),
    )
    return {"unowned_keys": unowned_keys}

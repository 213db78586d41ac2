"""Members, and the tenant that they belong to, over REST."""

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
from console.api.authentication import AuthenticatedRequest, actor_of, documents_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import PageQuery, PageResponse
from tenants.base.pagination import Page
from tenants.base.permissions import Permission, Role
from tenants.base.text_validation import MAX_REASON_CHARS
from tenants.identity.api_keys.queries import KeySummary
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.identity.members.queries import TenantView, find_member, get_tenant, page_of_members
from tenants.security.authorization.directory import MemberRow

router = Router(tags=["members"])
tenant_router = Router(tags=["tenant"])

Reason = Annotated[str, Field(max_length=MAX_REASON_CHARS)]


class TenantResponse(ResponseSchema):
    slug: str
    name: str
    status: TenantStatus
    region: str  # where its data is kept
    isolation: Isolation  # of the prefix cache, as the policy has it
    created_at: datetime


class MemberResponse(ResponseSchema):
    user_id: uuid.UUID
    email: str
    name: str
    role: Role
    created_at: datetime  # member since


class UnownedKey(ResponseSchema):
    """A key that goes on, though somebody who may make none any more was shown its text."""

    lookup_id: str
    kind: KeyKind
    name: str


class UnownedKeys(ResponseSchema):
    keys: list[UnownedKey]  # newest first, 100 at most
    total: int


class MembershipChangeResponse(MemberResponse):
    left_keys: UnownedKeys  # that the new role may not make


class RemovedMember(ResponseSchema):
    left_keys: UnownedKeys  # a member's own are revoked, and not among them


class MemberPage(PageResponse):
    rows: list[MemberResponse]  # newest first


class PagedMembers(PageQuery):
    team_id: uuid.UUID | None = None  # those of one team only


class ChangeMember(RequestSchema, json_schema_extra={"example": {"role": "auditor"}}):
    role: Role
    reason: Reason = ""


class RemoveMember(
    RequestSchema, json_schema_extra={"example": {"reason": "She left the company."}}
):
    reason: Reason = ""


@tenant_router.get(
    "",
    response=TenantResponse,
    summary="The tenant: its status, region and isolation.",
    openapi_extra=documents_permissions(Permission.READ_TENANT),
)
def get(request: AuthenticatedRequest) -> TenantView:
    return get_tenant(actor=actor_of(request))


@router.get(
    "",
    response=MemberPage,
    summary="List members, or those of one team.",
    openapi_extra=documents_permissions(Permission.READ_MEMBERS),
)
def list_all(request: AuthenticatedRequest, page: Query[PagedMembers]) -> Page[MemberRow]:
    return page_of_members(
        actor=actor_of(request), limit=page.limit, cursor=page.cursor, team_id=page.team_id
    )


@router.get(
    "/{user_id}",
    response=MemberResponse,
    summary="One member.",
    openapi_extra=documents_permissions(Permission.READ_MEMBERS),
)
def find(request: AuthenticatedRequest, user_id: uuid.UUID) -> MemberRow:
    return find_member(actor=actor_of(request), user_id=UserId(str(user_id)))


@router.patch(
    "/{user_id}",
    response=MembershipChangeResponse,
    summary="Give a member another role. Only an owner makes owners.",
    openapi_extra=documents_permissions(Permission.WRITE_MEMBERS),
)
def change(
    request: AuthenticatedRequest, user_id: uuid.UUID, asked: ChangeMember
) -> dict[str, Any]:
    changed = change_role(
        actor=actor_of(request),
        user_id=UserId(str(user_id)),
        role=asked.role,
        reason=asked.reason,
        now=timezone.now(),
    )
    return asdict(changed.member) | {"left_keys": changed.left_keys}


@router.post(
    "/{user_id}/remove",
    response=RemovedMember,
    summary="End a membership; its keys are refused within a second. Anybody may leave.",
    openapi_extra=documents_permissions(Permission.WRITE_MEMBERS),
)
def remove(
    request: AuthenticatedRequest, user_id: uuid.UUID, asked: RemoveMember | None = None
) -> dict[str, KeySummary]:
    left_keys = remove_member(
        actor=actor_of(request),
        user_id=UserId(str(user_id)),
        reason=asked.reason if asked else "",
        now=timezone.now(),
    )
    return {"left_keys": left_keys}

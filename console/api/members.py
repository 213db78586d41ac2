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
from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer, Body
from console.api.pagination import PageAnswer, Paged
from tenants.base.pagination import Page
from tenants.base.permissions import Permission, Role
from tenants.base.text_validation import MAX_REASON_CHARS
from tenants.identity.api_keys.queries import FirstKeys
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.identity.members.queries import (
    MemberRow,
    TenantView,
    find_member,
    get_tenant,
    page_of_members,
)

router = Router(tags=["members"])
tenant_router = Router(tags=["tenant"])

Reason = Annotated[str, Field(max_length=MAX_REASON_CHARS)]


class Tenant(Answer):
    slug: str
    name: str
    status: TenantStatus
    region: str  # where its data is kept
    isolation: Isolation  # of the prefix cache, as the policy has it
    created_at: datetime


class Member(Answer):
    user_id: uuid.UUID
    email: str
    name: str
    role: Role
    created_at: datetime  # member since


class LeftKey(Answer):
    """A key that goes on, though somebody who may make none any more was shown its text."""

    lookup_id: str
    kind: KeyKind
    name: str


class LeftKeys(Answer):
    keys: list[LeftKey]  # newest first, 100 at most
    total: int


class ChangedMember(Member):
    left_keys: LeftKeys  # that the new role may not make


class RemovedMember(Answer):
    left_keys: LeftKeys  # a member's own are revoked, and not among them


class MemberPage(PageAnswer):
    rows: list[Member]  # newest first


class PagedMembers(Paged):
    team_id: uuid.UUID | None = None  # those of one team only


class ChangeMember(Body, json_schema_extra={"example": {"role": "auditor"}}):
    role: Role
    reason: Reason = ""


class RemoveMember(Body, json_schema_extra={"example": {"reason": "She left the company."}}):
    reason: Reason = ""


@tenant_router.get(
    "",
    response=Tenant,
    summary="The tenant: its status, region and isolation.",
    openapi_extra=open_to(Permission.READ_TENANT),
)
def get(request: ApiRequest) -> TenantView:
    return get_tenant(actor=actor_of(request))


@router.get(
    "",
    response=MemberPage,
    summary="List members, or those of one team.",
    openapi_extra=open_to(Permission.READ_MEMBERS),
)
def list_all(request: ApiRequest, page: Query[PagedMembers]) -> Page[MemberRow]:
    return page_of_members(
        actor=actor_of(request), limit=page.limit, cursor=page.cursor, team_id=page.team_id
    )


@router.get(
    "/{user_id}",
    response=Member,
    summary="One member.",
    openapi_extra=open_to(Permission.READ_MEMBERS),
)
def find(request: ApiRequest, user_id: uuid.UUID) -> MemberRow:
    return find_member(actor=actor_of(request), user_id=UserId(str(user_id)))


@router.patch(
    "/{user_id}",
    response=ChangedMember,
    summary="Give a member another role. Only an owner makes owners.",
    openapi_extra=open_to(Permission.WRITE_MEMBERS),
)
def change(request: ApiRequest, user_id: uuid.UUID, asked: ChangeMember) -> dict[str, Any]:
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
    openapi_extra=open_to(Permission.WRITE_MEMBERS),
)
def remove(
    request: ApiRequest, user_id: uuid.UUID, asked: RemoveMember | None = None
) -> dict[str, FirstKeys]:
    left_keys = remove_member(
        actor=actor_of(request),
        user_id=UserId(str(user_id)),
        reason=asked.reason if asked else "",
        now=timezone.now(),
    )
    return {"left_keys": left_keys}

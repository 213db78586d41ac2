"""Teams over REST."""

import uuid
from datetime import datetime

from django.utils import timezone
from ninja import Query, Router, Status

from caret.foundation.ids import UserId
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.identity.teams.operations import (
    add_team_member,
    create_team,
    delete_team,
    remove_team_member,
    rename_team,
)
from tenants.identity.teams.queries import TeamView, find_team, read_page_of_teams

router = Router(tags=["teams"])


class TeamResponse(ResponseSchema):
    id: uuid.UUID
    name: str
    num_members: int
    created_at: datetime


class TeamPage(PageResponse):
    items: Items[TeamResponse]  # newest first


class TeamNameRequest(RequestSchema, json_schema_extra={"example": {"name": "Platform"}}):
    name: str  # 1 to 120 characters, unique among the tenant's teams


@router.get(
    "",
    response=TeamPage,
    summary="List teams; /members?team_id=ID lists the members of a team.",
    openapi_extra=document_permissions(Permission.READ_TEAMS),
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[TeamView]:
    return read_page_of_teams(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.post(
    "",
    response={201: TeamResponse},
    summary="Create a team.",
    openapi_extra=document_permissions(Permission.WRITE_TEAMS),
)
def create(request: AuthenticatedRequest, body: TeamNameRequest) -> Status[object]:
    team = create_team(actor=actor_of(request), name=body.name, now=timezone.now())
    return Status(201, team)


@router.get(
    "/{team_id}",
    response=TeamResponse,
    summary="Get a team.",
    openapi_extra=document_permissions(Permission.READ_TEAMS),
)
def find(request: AuthenticatedRequest, team_id: uuid.UUID) -> TeamView:
    return find_team(actor=actor_of(request), team_id=team_id)


@router.patch(
    "/{team_id}",
    response=TeamResponse,
    summary="Rename a team.",
    openapi_extra=document_permissions(Permission.WRITE_TEAMS),
)
def rename(request: AuthenticatedRequest, team_id: uuid.UUID, body: TeamNameRequest) -> TeamView:
    return rename_team(actor=actor_of(request), team_id=team_id, name=body.name, now=timezone.now())


@router.delete(
    "/{team_id}",
    response={204: None},
    summary="Delete a team; its members stay members of the tenant.",
    openapi_extra=document_permissions(Permission.WRITE_TEAMS),
)
def delete(request: AuthenticatedRequest, team_id: uuid.UUID) -> Status[None]:
    delete_team(actor=actor_of(request), team_id=team_id, now=timezone.now())
    return Status(204, None)


@router.put(
    "/{team_id}/members/{user_id}",
    response=TeamResponse,
    summary="Add a member to a team.",
    openapi_extra=document_permissions(Permission.WRITE_TEAMS),
)
def put_member(request: AuthenticatedRequest, team_id: uuid.UUID, user_id: uuid.UUID) -> TeamView:
    return add_team_member(
        actor=actor_of(request),
        team_id=team_id,
        user_id=UserId(str(user_id)),
        now=timezone.now(),
    )


@router.delete(
    "/{team_id}/members/{user_id}",
    response=TeamResponse,
    summary="Remove a member from a team.",
    openapi_extra=document_permissions(Permission.WRITE_TEAMS),
)
def delete_member(
    request: AuthenticatedRequest, team_id: uuid.UUID, user_id: uuid.UUID
) -> TeamView:
    return remove_team_member(
        actor=actor_of(request),
        team_id=team_id,
        user_id=UserId(str(user_id)),
        now=timezone.now(),
    )

"""Teams over REST."""

import uuid
from datetime import datetime

from django.utils import timezone
from ninja import Query, Router, Status

from caret.foundation.ids import UserId
from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer, Body
from console.api.pagination import PageAnswer, Paged
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.identity.teams.operations import (
    create_team,
    delete_team,
    put_into_team,
    rename_team,
    take_out_of_team,
)
from tenants.identity.teams.queries import TeamView, find_team, page_of_teams

router = Router(tags=["teams"])


class Team(Answer):
    id: uuid.UUID
    name: str
    num_members: int
    created_at: datetime


class TeamPage(PageAnswer):
    rows: list[Team]  # newest first


class NamedTeam(Body, json_schema_extra={"example": {"name": "Platform"}}):
    name: str  # 1 to 120 characters, one team's only


@router.get(
    "",
    response=TeamPage,
    summary="List teams; their members are at /members?team_id=.",
    openapi_extra=open_to(Permission.READ_TEAMS),
)
def list_all(request: ApiRequest, page: Query[Paged]) -> Page[TeamView]:
    return page_of_teams(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.post(
    "",
    response={201: Team},
    summary="Make a team.",
    openapi_extra=open_to(Permission.WRITE_TEAMS),
)
def create(request: ApiRequest, asked: NamedTeam) -> Status[object]:
    made = create_team(actor=actor_of(request), name=asked.name, now=timezone.now())
    return Status(201, made)


@router.get(
    "/{team_id}",
    response=Team,
    summary="One team.",
    openapi_extra=open_to(Permission.READ_TEAMS),
)
def find(request: ApiRequest, team_id: uuid.UUID) -> TeamView:
    return find_team(actor=actor_of(request), team_id=team_id)


@router.patch(
    "/{team_id}",
    response=Team,
    summary="Rename a team.",
    openapi_extra=open_to(Permission.WRITE_TEAMS),
)
def rename(request: ApiRequest, team_id: uuid.UUID, asked: NamedTeam) -> TeamView:
    return rename_team(
        actor=actor_of(request), team_id=team_id, name=asked.name, now=timezone.now()
    )


@router.delete(
    "/{team_id}",
    response={204: None},
    summary="Delete a team; its members stay members of the tenant.",
    openapi_extra=open_to(Permission.WRITE_TEAMS),
)
def delete(request: ApiRequest, team_id: uuid.UUID) -> Status[None]:
    delete_team(actor=actor_of(request), team_id=team_id, now=timezone.now())
    return Status(204, None)


@router.put(
    "/{team_id}/members/{user_id}",
    response=Team,
    summary="Put a member into a team.",
    openapi_extra=open_to(Permission.WRITE_TEAMS),
)
def put_member(request: ApiRequest, team_id: uuid.UUID, user_id: uuid.UUID) -> TeamView:
    return put_into_team(
        actor=actor_of(request),
        team_id=team_id,
        user_id=UserId(str(user_id)),
        now=timezone.now(),
    )


@router.delete(
    "/{team_id}/members/{user_id}",
    response=Team,
    summary="Take a member out of a team.",
    openapi_extra=open_to(Permission.WRITE_TEAMS),
)
def delete_member(request: ApiRequest, team_id: uuid.UUID, user_id: uuid.UUID) -> TeamView:
    return take_out_of_team(
        actor=actor_of(request),
        team_id=team_id,
        user_id=UserId(str(user_id)),
        now=timezone.now(),
    )

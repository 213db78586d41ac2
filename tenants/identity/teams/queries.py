"""Queries of teams."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

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
from tenants.base.permissions import Permission
from tenants.models import Team, TeamMembership
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class TeamView:
    id: uuid.UUID
    name: str
    num_members: int
    created_at: datetime


def read_page_of_teams(*, actor: Actor, limit: int, cursor: str | None) -> Page[TeamView]:
    """Return a page of teams, newest first. One query. Raises Forbidden, InvalidValue."""
    actor.require(Permission.READ_TEAMS)
    with tenant_scope(actor.tenant_id):
        rows = fetch_page_rows(select_teams(actor), limit=limit, after=decode_cursor(cursor))
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, build_team_view)


def find_team(*, actor: Actor, team_id: uuid.UUID) -> TeamView:
    """Return one team. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_TEAMS)
    with tenant_scope(actor.tenant_id):
        try:
            return build_team_view(select_teams(actor).get(id=team_id))
        except Team.DoesNotExist as error:
            raise NotFound("This team does not exist.") from error


def select_teams(actor: Actor) -> QuerySet[Team]:
    """Select the tenant's teams, annotated with `num_members`."""
    # A sub-query is needed, because the model of memberships has no foreign key to the team.
    members = (
        TeamMembership.objects.filter(tenant_id=OuterRef("tenant_id"), team_id=OuterRef("id"))
        .order_by()
        .values("team_id")
        .annotate(num=Count("user_id"))
        .values("num")
    )
    num_members = Coalesce(Subquery(members, output_field=IntegerField()), 0)
    return Team.objects.filter(tenant_id=actor.tenant_id).annotate(num_members=num_members)


def build_team_view(row: Team) -> TeamView:
    """Build the view of a row that select_teams selected."""
    num_members: int = row.num_members  # type: ignore[attr-defined]  # annotated by select_teams
    return TeamView(row.id, row.name, num_members, row.created_at)

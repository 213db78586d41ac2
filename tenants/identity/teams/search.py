"""Reads of teams: search by name, a list of names, and whether SCIM manages a team."""

import uuid
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from django.db.models import F
from django.db.models.functions import Lower

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.base.sorted_pagination import SortOrder, fetch_sorted_page
from tenants.base.validation.text import is_storable
from tenants.identity.teams.queries import TeamView, build_team_view, select_teams
from tenants.models import ScimGroup, Team
from tenants.security.authorization.actor import Actor


class TeamOrder(StrEnum):
    NAME = "name"
    CREATED = "created"


_SORT_ORDERS: Final = MappingProxyType(
    {
        TeamOrder.NAME: SortOrder(Lower("name")),
        TeamOrder.CREATED: SortOrder(F("created_at"), is_time=True),
    }
)


@dataclass(frozen=True, slots=True)
class TeamFilter:
    text: str = ""  # part of the name, in upper or lower case; "": all teams
    order: TeamOrder = TeamOrder.NAME
    is_descending: bool = False


def find_teams(
    *, actor: Actor, team_filter: TeamFilter, limit: int, cursor: str | None
) -> Page[TeamView]:
    """Return a page of the teams that the filter selects, in its order. One query.

    Raises Forbidden, and InvalidValue for a bad cursor.
    """
    actor.require(Permission.READ_TEAMS)
    order = replace(_SORT_ORDERS[team_filter.order], is_descending=team_filter.is_descending)
    text = team_filter.text.strip()
    with tenant_scope(actor.tenant_id):
        teams = select_teams(actor)
        if not is_storable(text):
            teams = teams.none()  # no name contains it, and Postgres would refuse the query
        elif text:
            teams = teams.filter(name__icontains=text)
        page = fetch_sorted_page(teams, order=order, limit=limit, cursor=cursor)
    return map_page(page, build_team_view)


def list_team_names(*, actor: Actor, limit: int) -> list[str]:
    """Return the names of teams, sorted, at most `limit`. One query. Raises Forbidden."""
    actor.require(Permission.READ_TEAMS)
    teams = Team.objects.filter(tenant_id=actor.tenant_id).order_by(Lower("name"), "id")
    with tenant_scope(actor.tenant_id):
        return list(teams.values_list("name", flat=True)[:limit])


def is_managed_by_scim(*, actor: Actor, team_id: uuid.UUID) -> bool:
    """Return whether SCIM manages the team, so that only the identity provider may change it.

    One query. Raises Forbidden.
    """
    actor.require(Permission.READ_TEAMS)
    with tenant_scope(actor.tenant_id):
        return ScimGroup.objects.filter(tenant_id=actor.tenant_id, team_id=team_id).exists()

"""What a period's usage can be narrowed to: its languages, editors, models, variants and teams."""

from collections.abc import Mapping

from django.db.models import F

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.models import Team
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.filters import COLUMNS
from tenants.usage.reports.queries import ReportKind, ReportQuery, is_limited_to_own, rollups_for

FilterOptions = dict[str, list[str]]  # by column


def read_filter_options(
    *, actor: Actor, kind: ReportKind, asked: ReportQuery
) -> tuple[FilterOptions, Mapping[str, str]]:
    """And the teams' names by id. Raises Forbidden. Two queries."""
    is_own = is_limited_to_own(actor, kind)
    with tenant_scope(actor.tenant_id):
        return choices_of(actor, asked, is_own=is_own), names_of_teams(actor)


def choices_of(actor: Actor, asked: ReportQuery, *, is_own: bool) -> FilterOptions:
    """Inside the tenant's scope. Of all that was used then, not of the part that is asked about."""
    rows = list(
        rollups_for(actor, asked.without_filter, is_own=is_own).values_list(*COLUMNS).distinct()
    )
    return {column: sorted({row[place] for row in rows}) for place, column in enumerate(COLUMNS)}


def names_of_teams(actor: Actor, *, known: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Inside the tenant's scope. None for who may not see them. `known`: as they were read
    already."""
    if not actor.has_permission(Permission.READ_TEAMS):
        return {}
    if known is not None:
        return known
    teams = Team.objects.filter(tenant_id=actor.tenant_id).order_by(F("name"))
    return {str(team_id): name for team_id, name in teams.values_list("id", "name")}

"""Filter options: the languages, editors, models, variants and teams of a period's usage."""

from collections.abc import Mapping

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.models import Team
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.filters import COLUMNS
from tenants.usage.reports.queries import ReportKind, ReportQuery, is_limited_to_own, select_rollups

FilterOptions = dict[str, list[str]]  # the values that occur, sorted, by column


def read_filter_options(
    *, actor: Actor, kind: ReportKind, query: ReportQuery
) -> tuple[FilterOptions, Mapping[str, str]]:
    """Return the filter options, and the teams' names by ID.

    Up to two queries. Raises Forbidden.
    """
    is_own = is_limited_to_own(actor, kind)
    with tenant_scope(actor.tenant_id):
        return read_options(actor, query, is_own=is_own), read_team_names(actor)


def read_options(actor: Actor, query: ReportQuery, *, is_own: bool) -> FilterOptions:
    """Return the values that occur in the period, whatever the query's filter.

    Must run inside the tenant's scope. One query.
    """
    rows = list(
        select_rollups(actor, query.without_filter, is_own=is_own).values_list(*COLUMNS).distinct()
    )
    return {column: sorted({row[index] for row in rows}) for index, column in enumerate(COLUMNS)}


def read_team_names(
    actor: Actor, *, known_names: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Return the teams' names by ID; empty without READ_TEAMS.

    `known_names`: the names, if the caller has already read them; None: read them. Must run inside
    the tenant's scope.
    """
    if not actor.has_permission(Permission.READ_TEAMS):
        return {}
    if known_names is not None:
        return known_names
    teams = Team.objects.filter(tenant_id=actor.tenant_id).order_by("name")
    return {str(team_id): name for team_id, name in teams.values_list("id", "name")}

"""Counters of a period by several dimensions, see `breakdown`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.breakdown import compute_breakdown, row_of, rows_of
from tenants.usage.reports.filter_options import FilterOptions, choices_of, names_of_teams
from tenants.usage.reports.queries import (
    GroupBy,
    ReportKind,
    ReportQuery,
    ReportRow,
    check,
    is_limited_to_own,
    min_group_size,
    rollups_for,
)
from tenants.usage.reports.suppression.suppressed_figures import find_suppressed
from tenants.usage.rollups.operations import complete_until


@dataclass(frozen=True, slots=True)
class UsageFigures:
    is_own: bool
    total: ReportRow
    by: Mapping[GroupBy, list[ReportRow]]
    complete_until: datetime | None
    min_users: int
    choices: FilterOptions
    teams: Mapping[str, str]  # names by ID


def read_figures(
    *,
    actor: Actor,
    kind: ReportKind,
    query: ReportQuery,
    by: Sequence[GroupBy],
    names: Sequence[str],
) -> UsageFigures:
    """Return the figures. `names` are the requested counters. Up to eight queries.

    Raises Forbidden, InvalidValue.
    """
    is_own = is_limited_to_own(actor, kind)
    check(query)
    with tenant_scope(actor.tenant_id):
        breakdown = compute_breakdown(
            rollups_for(actor, query, is_own=is_own), query, by, names=names
        )
        min_users = 1 if is_own else min_group_size(actor)
        suppressed = find_suppressed(actor, kind, query, breakdown, min_users=min_users)
        until = complete_until(actor.tenant_id)
        choices, teams = choices_of(actor, query, is_own=is_own), names_of_teams(actor)
    return UsageFigures(
        is_own=is_own,
        total=row_of("", breakdown.every, suppressed.whole),
        by={
            each: rows_of(breakdown.by.get(each, {}), suppressed.groups.get(each, {}))
            for each in by
        },
        complete_until=until,
        min_users=min_users,
        choices=choices,
        teams=teams,
    )

"""Counters of a period by several dimensions, with suppression and filter options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.breakdown import build_row, build_rows, compute_breakdown
from tenants.usage.reports.filter_options import FilterOptions, read_options, read_team_names
from tenants.usage.reports.queries import (
    GroupBy,
    ReportKind,
    ReportQuery,
    ReportRow,
    check_report_period,
    is_limited_to_own,
    read_min_group_size,
    select_rollups,
)
from tenants.usage.reports.suppression.suppressed_figures import find_suppressed
from tenants.usage.rollups.operations import find_complete_until


@dataclass(frozen=True, slots=True)
class UsageFigures:
    is_own: bool  # of the actor only; False: of the whole tenant
    total: ReportRow
    group_rows: Mapping[GroupBy, list[ReportRow]]  # by dimension
    complete_until: datetime | None  # None: nothing was counted yet
    min_users: int  # groups with fewer users are suppressed
    choices: FilterOptions
    teams: Mapping[str, str]  # names by ID


def read_figures(
    *,
    actor: Actor,
    kind: ReportKind,
    query: ReportQuery,
    dimensions: Sequence[GroupBy],
    names: Sequence[str],
) -> UsageFigures:
    """Return the figures of the period by the given dimensions. Up to eight queries.

    `names` are the requested counters; the others are 0. Raises Forbidden, InvalidValue.
    """
    is_own = is_limited_to_own(actor, kind)
    check_report_period(query)
    with tenant_scope(actor.tenant_id):
        breakdown = compute_breakdown(
            select_rollups(actor, query, is_own=is_own), query, dimensions, names=names
        )
        min_users = 1 if is_own else read_min_group_size(actor)
        suppressed = find_suppressed(actor, kind, query, breakdown, min_users=min_users)
        until = find_complete_until(actor.tenant_id)
        choices, teams = read_options(actor, query, is_own=is_own), read_team_names(actor)
    return UsageFigures(
        is_own=is_own,
        total=build_row("", breakdown.total, suppressed.total),
        group_rows={
            dimension: build_rows(
                breakdown.groups.get(dimension, {}), suppressed.groups.get(dimension, {})
            )
            for dimension in dimensions
        },
        complete_until=until,
        min_users=min_users,
        choices=choices,
        teams=teams,
    )

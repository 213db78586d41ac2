"""Suppression of the figures of a console page, so that they reveal no single user."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tenants.security.authorization.actor import Actor
from tenants.usage.reports.breakdown import Breakdown, GroupCounters, find_suppressed_keys
from tenants.usage.reports.filters import COLUMNS
from tenants.usage.reports.latency import get_measured_since
from tenants.usage.reports.queries import (
    GroupBy,
    ReportKind,
    ReportQuery,
    find_total_suppression,
    format_time_key,
    select_rollups_of_everybody,
)
from tenants.usage.reports.suppression.cells import SuppressionTable
from tenants.usage.reports.suppression.filtered_suppression import (
    FilteredUsage,
    build_filtered_usage,
)
from tenants.usage.reports.suppression.small_groups import Suppression

SuppressedGroups = Mapping[GroupBy, Mapping[str, Suppression]]  # by dimension and ReportRow.key
_TablesByTime = Mapping[datetime, SuppressionTable]  # by the start of an hour or day


@dataclass(frozen=True, slots=True)
class SuppressedFigures:
    """The reasons for suppression. None: the figure may be shown."""

    total: Suppression | None
    groups: SuppressedGroups


@dataclass(frozen=True, slots=True)
class SuppressedOverview:
    """The reasons for suppression. None: the figure may be shown."""

    usage: Suppression | None
    usage_before: Suppression | None  # of the preceding period of the same length
    quality: Suppression | None
    quality_before: Suppression | None
    latency: Suppression | None
    latency_before: Suppression | None
    groups: SuppressedGroups
    # Filter options of the whole usage by column; None: not read.
    choices: Mapping[str, list[str]] | None = None
    team_names: Mapping[str, str] | None = None  # by ID; None: not read


def find_suppressed(
    actor: Actor, kind: ReportKind, query: ReportQuery, breakdown: Breakdown, *, min_users: int
) -> SuppressedFigures:
    """Return the suppressed figures. Must run inside the tenant's scope.

    Up to three queries; none without a filter, or for the actor's own usage.
    """
    if query.filter.is_empty or min_users == 1:
        return SuppressedFigures(
            find_total_suppression(kind, breakdown.total.users, min_users),
            _suppress_small_groups(breakdown, min_users),
        )
    filtered_usage = build_filtered_usage(actor, query.filter, min_users=min_users)
    rows = select_rollups_of_everybody(actor, begins_at=query.starts_at, query=query)
    table = filtered_usage.read_table(rows, *COLUMNS)
    tables_by_time = (
        filtered_usage.read_tables_by_time(rows) if GroupBy.DAY in breakdown.groups else {}
    )
    suppression = filtered_usage.find_suppression(table)
    if suppression is not None:
        return SuppressedFigures(suppression, _suppress_all_groups(breakdown, suppression))
    return SuppressedFigures(
        total=None,
        groups=_find_suppressed_groups(filtered_usage, query, breakdown, table, tables_by_time),
    )


def find_suppressed_in_overview(
    actor: Actor, query: ReportQuery, breakdown: Breakdown, before: GroupCounters, *, min_users: int
) -> SuppressedOverview:
    """Return the suppressed figures of the overview. Must run inside the tenant's scope.

    Up to three queries; none without a filter, or for the actor's own usage.
    """
    if not query.filter.is_empty and min_users > 1:
        return _find_suppressed_in_filtered_overview(actor, query, breakdown, min_users)
    # Without a filter, the total usage and the latencies are always shown.
    return SuppressedOverview(
        usage=None,
        usage_before=None,
        quality=find_total_suppression(ReportKind.QUALITY, breakdown.total.users, min_users),
        quality_before=find_total_suppression(ReportKind.QUALITY, before.users, min_users),
        latency=None,
        latency_before=None,
        groups=_suppress_small_groups(breakdown, min_users),
    )


def _find_suppressed_in_filtered_overview(
    actor: Actor, query: ReportQuery, breakdown: Breakdown, min_users: int
) -> SuppressedOverview:
    filtered_usage = build_filtered_usage(actor, query.filter, min_users=min_users)
    tables_by_time = filtered_usage.read_tables_by_time(
        select_rollups_of_everybody(actor, begins_at=query.previous_period.starts_at, query=query)
    )
    table = filtered_usage.read_table(
        select_rollups_of_everybody(actor, begins_at=query.starts_at, query=query), *COLUMNS
    )
    # Latencies of a long period are measured only from this time on.
    since = get_measured_since(begins_at=query.starts_at, ends_at=query.ends_at)

    def find_suppression(begins_at: datetime, ends_at: datetime) -> Suppression | None:
        tables = _select_period(tables_by_time, begins_at, ends_at).values()
        return filtered_usage.find_suppression(filtered_usage.merge_tables(tables))

    suppression = filtered_usage.find_suppression(table)
    before = find_suppression(query.previous_period.starts_at, query.starts_at)
    return SuppressedOverview(
        usage=suppression,
        usage_before=before,
        quality=suppression,
        quality_before=before,
        latency=suppression or find_suppression(since, query.ends_at),
        latency_before=find_suppression(since - (query.ends_at - since), since),
        groups=_suppress_all_groups(breakdown, suppression)
        if suppression
        else _find_suppressed_groups(filtered_usage, query, breakdown, table, tables_by_time),
        choices={
            column: sorted(value for (value,) in table.users.users_by_cell((column,)))
            for column in COLUMNS
        },
        team_names=filtered_usage.team_names or None,
    )


def _suppress_small_groups(breakdown: Breakdown, min_users: int) -> SuppressedGroups:
    return {
        dimension: find_suppressed_keys(groups, min_users)
        for dimension, groups in breakdown.groups.items()
    }


def _suppress_all_groups(breakdown: Breakdown, suppression: Suppression) -> SuppressedGroups:
    return {
        dimension: dict.fromkeys(groups, suppression)
        for dimension, groups in breakdown.groups.items()
    }


def _find_suppressed_groups(
    filtered_usage: FilteredUsage,
    query: ReportQuery,
    breakdown: Breakdown,
    table: SuppressionTable,
    tables_by_time: _TablesByTime,
) -> SuppressedGroups:
    tables_of_period = _select_period(tables_by_time, query.starts_at, query.ends_at)
    tables_by_key = {
        format_time_key(query, at): table_at_time for at, table_at_time in tables_of_period.items()
    }
    return {
        dimension: filtered_usage.find_suppressed_times(tables_by_key)
        if dimension is GroupBy.DAY
        else filtered_usage.find_suppressed_groups(table, dimension.value)
        for dimension in breakdown.groups
    }


def _select_period(
    tables_by_time: _TablesByTime, begins_at: datetime, ends_at: datetime
) -> _TablesByTime:
    return {at: table for at, table in tables_by_time.items() if begins_at <= at < ends_at}

"""The figures of a period for the console's overview, in few queries.

`read_usage_summary` is for administrators: figures of all users by day, and the use of seats.
`read_overview` is for engineers: it has filters, latencies, and groups by more dimensions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Subquery

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.models import Membership, RollupState, Tenant, UsageRecord
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.breakdown import (
    Breakdown,
    GroupCounters,
    build_row,
    build_rows,
    compute_breakdown,
)
from tenants.usage.reports.filter_options import read_options, read_team_names
from tenants.usage.reports.filters import COLUMNS, build_filter_condition, filter_visible_records
from tenants.usage.reports.latency import LatencyReport, measure_latency, read_latency_rollups
from tenants.usage.reports.queries import (
    GroupBy,
    ReportKind,
    ReportQuery,
    ReportRow,
    check_report_period,
    is_limited_to_own,
    select_rollups,
)
from tenants.usage.reports.suppression.suppressed_figures import (
    SuppressedOverview,
    find_suppressed_in_overview,
)

_COUNTERS: Final = (
    "requests",
    "completed",
    "cancelled",
    "errors",
    "shed",
    "suggestions",
    "prompt_tokens",
    "prompt_tokens_with_cache_info",
    "cached_tokens",
    "generated_tokens",
    "shown",
    "accepted",
    "partially_accepted",
)
DIMENSIONS: Final = (GroupBy.DAY, GroupBy.LANGUAGE, GroupBy.EDITOR, GroupBy.MODEL, GroupBy.VARIANT)


@dataclass(frozen=True, slots=True)
class SeatUse:
    num_seats: int  # current members
    num_active: int  # those of them with requests or typing reports in the period


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """The figures of all users. The fields `quality...` are None if the actor may not see them."""

    total: ReportRow
    before: ReportRow  # of the preceding period of the same length
    quality: ReportRow | None  # the total for quality reports, which may be suppressed separately
    quality_before: ReportRow | None
    days: list[ReportRow]
    seats: SeatUse
    min_users: int  # days with fewer users are suppressed


@dataclass(frozen=True, slots=True)
class Overview:
    is_own: bool  # of the actor only; False: of the whole tenant
    total: ReportRow
    before: ReportRow  # of the preceding period of the same length
    # The total for quality reports, which may be suppressed separately; None: the actor may not
    # see it.
    quality: ReportRow | None
    quality_before: ReportRow | None
    group_rows: Mapping[GroupBy, list[ReportRow]]  # by dimension
    latency: LatencyReport | None  # None: suppressed
    complete_until: datetime | None  # None: nothing was counted yet
    min_users: int  # groups with fewer users are suppressed
    choices: Mapping[str, list[str]]  # filter options by column
    teams: Mapping[str, str]  # names by ID


@dataclass(frozen=True, slots=True)
class _UsageCounts:
    breakdown: Breakdown
    before: GroupCounters  # the total of the preceding period
    suppressed: SuppressedOverview


def read_usage_summary(*, actor: Actor, query: ReportQuery) -> UsageSummary:
    """Return the summary of a period. `query` must have no filter. Three queries.

    Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.READ_USAGE)
    check_report_period(query)
    with tenant_scope(actor.tenant_id):
        min_users, members = _read_members(actor)
        counts = _read_counts(actor, query, (GroupBy.DAY,), is_own=False, min_users=min_users)
    sees_quality = actor.has_permission(Permission.READ_QUALITY)
    breakdown, before, suppressed = counts.breakdown, counts.before, counts.suppressed
    return UsageSummary(
        total=build_row("", breakdown.total, suppressed.usage),
        before=build_row("", before, suppressed.usage_before),
        quality=build_row("", breakdown.total, suppressed.quality) if sees_quality else None,
        quality_before=build_row("", before, suppressed.quality_before) if sees_quality else None,
        days=build_rows(
            breakdown.groups.get(GroupBy.DAY, {}), suppressed.groups.get(GroupBy.DAY, {})
        ),
        seats=SeatUse(num_seats=len(members), num_active=len(members & breakdown.total.users)),
        min_users=min_users,
    )


def _read_members(actor: Actor) -> tuple[int, frozenset[str]]:
    """Return the minimum size of groups, and the IDs of the current members. One query."""
    members = Membership.objects.filter(tenant_id=OuterRef("id"), ended_at__isnull=True)
    min_users, user_ids = (
        Tenant.objects.annotate(members=ArraySubquery(members.values("user_id")))
        .values_list("min_group_users", "members")
        .get(id=actor.tenant_id)
    )
    return min_users, frozenset(map(str, user_ids))


def read_overview(*, actor: Actor, query: ReportQuery) -> Overview:
    """Return the overview. Up to five queries; up to two more with a filter.

    Raises Forbidden, InvalidValue.
    """
    is_own = is_limited_to_own(actor, ReportKind.USAGE)
    check_report_period(query)
    with tenant_scope(actor.tenant_id):
        min_group_size, complete_until = _read_group_size_and_completeness(actor)
        min_users = 1 if is_own else min_group_size
        counts = _read_counts(actor, query, DIMENSIONS, is_own=is_own, min_users=min_users)
        breakdown, before, suppressed = counts.breakdown, counts.before, counts.suppressed
        latency = (
            None
            if suppressed.latency
            else _read_latency(actor, query, suppressed, is_own=is_own, min_users=min_users)
        )
        choices = _list_choices(actor, query, breakdown, suppressed, is_own=is_own)
        # The suppression may have read them already.
        teams = read_team_names(actor, known_names=suppressed.team_names)
    sees_quality = _can_see_quality(actor)
    return Overview(
        is_own=is_own,
        total=build_row("", breakdown.total, suppressed.usage),
        before=build_row("", before, suppressed.usage_before),
        quality=build_row("", breakdown.total, suppressed.quality) if sees_quality else None,
        quality_before=build_row("", before, suppressed.quality_before) if sees_quality else None,
        group_rows={
            dimension: build_rows(
                breakdown.groups.get(dimension, {}), suppressed.groups.get(dimension, {})
            )
            for dimension in DIMENSIONS
        },
        latency=latency,
        complete_until=complete_until,
        min_users=min_users,
        choices=choices,
        teams=teams,
    )


def _read_counts(
    actor: Actor, query: ReportQuery, dimensions: Sequence[GroupBy], *, is_own: bool, min_users: int
) -> _UsageCounts:
    rows, earlier_rows = (
        select_rollups(actor, period_query, is_own=is_own)
        for period_query in (query, query.previous_period)
    )
    breakdown = compute_breakdown(rows, query, dimensions, names=_COUNTERS)
    before = compute_breakdown(earlier_rows, query, (), names=_COUNTERS).total
    suppressed = find_suppressed_in_overview(actor, query, breakdown, before, min_users=min_users)
    return _UsageCounts(breakdown, before, suppressed)


def _can_see_quality(actor: Actor) -> bool:
    return actor.has_permission(Permission.READ_QUALITY) or actor.has_permission(
        Permission.READ_OWN_QUALITY
    )


def _read_latency(
    actor: Actor,
    query: ReportQuery,
    suppressed: SuppressedOverview,
    *,
    is_own: bool,
    min_users: int,
) -> LatencyReport:
    """Return the latencies. One query. `suppressed.latency` must be None.

    Without a filter, the latencies of the whole tenant come from rollups, and are always shown.
    Otherwise they are measured from usage records, and latencies of few users are left out.
    """
    if query.filter.is_empty and not is_own:
        return read_latency_rollups(
            actor.tenant_id,
            begins_at=query.starts_at,
            ends_at=query.ends_at,
            by_hour=query.hours_until is not None,
        )
    latency = measure_latency(
        filter_visible_records(
            actor,
            UsageRecord.objects.filter(
                build_filter_condition(actor, query.filter, is_for_records=True)
            ),
        ),
        begins_at=query.starts_at,
        ends_at=query.ends_at,
        min_users=min_users,
    )
    return replace(latency, before={}) if suppressed.latency_before else latency


def _read_group_size_and_completeness(actor: Actor) -> tuple[int, datetime | None]:
    """Return the minimum size of groups, and the time until which rollups are complete.

    One query.
    """
    state = RollupState.objects.filter(tenant_id=OuterRef("id"))
    row = (
        Tenant.objects.annotate(until=Subquery(state.values("complete_until")[:1]))
        .values("min_group_users", "until")
        .get(id=actor.tenant_id)
    )
    return row["min_group_users"], row["until"]


def _list_choices(
    actor: Actor,
    query: ReportQuery,
    breakdown: Breakdown,
    suppressed: SuppressedOverview,
    *,
    is_own: bool,
) -> Mapping[str, list[str]]:
    """Return the filter options by column: the values of all usage in the period.

    Without a filter, they are the groups of the breakdown. With a filter, the suppression may have
    read them already, which saves a query.
    """
    if query.filter.is_empty:
        return {column: sorted(breakdown.groups.get(GroupBy(column), {})) for column in COLUMNS}
    return suppressed.choices or read_options(actor, query, is_own=is_own)

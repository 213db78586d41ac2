"""The figures of a period for the console's first page, in few queries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum

from caret.contracts.pricing import BudgetScope
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import month_of, utc_day
from tenants.base.money import Currency
from tenants.base.permissions import Permission
from tenants.models import (
    BillingState,
    Budget,
    Membership,
    MonthSpend,
    RollupState,
    Tenant,
    UsageRecord,
)
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.breakdown import Breakdown, compute_breakdown, row_of, rows_of
from tenants.usage.reports.filter_options import choices_of, names_of_teams
from tenants.usage.reports.filters import COLUMNS, apply_filter, visible_to
from tenants.usage.reports.latency import LatencyReport, add_speeds, read_speeds
from tenants.usage.reports.queries import (
    GroupBy,
    ReportKind,
    ReportQuery,
    ReportRow,
    check,
    is_limited_to_own,
    rollups_for,
)
from tenants.usage.reports.suppression.suppressed_figures import (
    SuppressedOverview,
    hidden_in_overview,
)

_NAMES: Final = (
    *("requests", "completed", "cancelled", "errors", "shed", "suggestions"),
    *("prompt_tokens", "prompt_tokens_with_cache_info", "cached_tokens", "generated_tokens"),
    *("shown", "accepted", "partly_accepted"),
)
BY: Final = (GroupBy.DAY, GroupBy.LANGUAGE, GroupBy.EDITOR, GroupBy.MODEL, GroupBy.VARIANT)


@dataclass(frozen=True, slots=True)
class MonthlySpend:
    """The spending of the present month in UTC."""

    spent_micros: int
    limit_micros: int | None  # of the tenant's budget; None: no budget
    is_hard: bool
    currency: Currency


@dataclass(frozen=True, slots=True)
class Overview:
    is_own: bool
    total: ReportRow
    before: ReportRow  # of the preceding period of the same length
    # The totals again, where quality may be shown; None: the actor may not see it.
    quality: ReportRow | None
    quality_before: ReportRow | None
    by: Mapping[GroupBy, list[ReportRow]]
    speeds: LatencyReport | None  # None: suppressed
    spend: MonthlySpend | None  # None: the actor may not see it, or there is no plan
    complete_until: datetime | None
    min_users: int
    choices: Mapping[str, list[str]]  # filter options by column
    teams: Mapping[str, str]  # names by ID


@dataclass(frozen=True, slots=True)
class _OverviewScope:
    min_users: int
    complete_until: datetime | None
    spend: MonthlySpend | None


def overview(*, actor: Actor, query: ReportQuery, now: datetime) -> Overview:
    """Return the overview. Six queries; two more with a filter. Raises Forbidden, InvalidValue."""
    is_own = is_limited_to_own(actor, ReportKind.USAGE)
    check(query)
    with tenant_scope(actor.tenant_id):
        scope = _read_scope(actor, now)
        min_users = 1 if is_own else scope.min_users
        rows, earlier = (
            rollups_for(actor, each, is_own=is_own) for each in (query, query.previous_period)
        )
        breakdown = compute_breakdown(rows, query, BY, names=_NAMES)
        before = compute_breakdown(earlier, query, (), names=_NAMES).every
        suppressed = hidden_in_overview(actor, query, breakdown, before, min_users=min_users)
        speeds = (
            None
            if suppressed.speeds
            else _read_latency(actor, query, suppressed, is_own=is_own, min_users=min_users)
        )
        choices = _list_choices(actor, query, breakdown, suppressed, is_own=is_own)
        teams = names_of_teams(actor, known_names=suppressed.team_names)
    sees_quality = _sees_quality(actor)
    return Overview(
        is_own=is_own,
        total=row_of("", breakdown.every, suppressed.usage),
        before=row_of("", before, suppressed.usage_before),
        quality=row_of("", breakdown.every, suppressed.quality) if sees_quality else None,
        quality_before=row_of("", before, suppressed.quality_before) if sees_quality else None,
        by={
            each: rows_of(breakdown.by.get(each, {}), suppressed.groups.get(each, {}))
            for each in BY
        },
        speeds=speeds,
        spend=scope.spend,
        complete_until=scope.complete_until,
        min_users=min_users,
        choices=choices,
        teams=teams,
    )


def _sees_quality(actor: Actor) -> bool:
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
    if query.filter.is_empty and not is_own:
        return add_speeds(
            actor.tenant_id,
            begins_at=query.starts_at,
            ends_at=query.ends_at,
            by_hour=query.hours_until is not None,
        )
    latency = read_speeds(
        visible_to(
            actor, UsageRecord.objects.filter(apply_filter(actor, query.filter, is_raw=True))
        ),
        begins_at=query.starts_at,
        ends_at=query.ends_at,
        min_users=min_users,
    )
    return replace(latency, before={}) if suppressed.speeds_before else latency


def _read_scope(actor: Actor, now: datetime) -> _OverviewScope:
    """Read several single values in one query."""
    budget = Budget.objects.filter(tenant_id=OuterRef("id"), scope=BudgetScope.TENANT)
    first = budget.order_by("limit_micros")
    seats = Membership.objects.filter(tenant_id=OuterRef("id"), ended_at=None)
    month = MonthSpend.objects.filter(tenant_id=OuterRef("id"), month=month_of(utc_day(now)))
    row = Tenant.objects.annotate(
        until=_subquery_for(RollupState.objects.filter(tenant_id=OuterRef("id")), "complete_until"),
        currency=_subquery_for(BillingState.objects.filter(tenant_id=OuterRef("id")), "currency"),
        spent=_subquery_for(
            month.order_by().values("tenant_id").annotate(all=Sum("micros")), "all"
        ),
        limit=_subquery_for(first, "limit_micros"),
        is_hard=_subquery_for(first, "is_hard"),
        is_per_seat=_subquery_for(first, "is_per_seat"),
        num_seats=_subquery_for(
            seats.order_by().values("tenant_id").annotate(num=Count("user_id")), "num"
        ),
    ).get(id=actor.tenant_id)
    values: dict[str, Any] = vars(row)
    seats_counted = max(1, values["num_seats"] or 0) if values["is_per_seat"] else 1
    sees_spend = actor.has_permission(Permission.READ_BILLING) and values["currency"] is not None
    spend = MonthlySpend(
        spent_micros=values["spent"] or 0,
        limit_micros=values["limit"] and values["limit"] * seats_counted,
        is_hard=bool(values["is_hard"]),
        currency=Currency(values["currency"] or Currency.EUR),
    )
    return _OverviewScope(row.min_group_users, values["until"], spend if sees_spend else None)


def _subquery_for(rows: QuerySet[Any, Any], column: str) -> Subquery:
    return Subquery(rows.values(column)[:1])


def _list_choices(
    actor: Actor,
    query: ReportQuery,
    breakdown: Breakdown,
    suppressed: SuppressedOverview,
    *,
    is_own: bool,
) -> Mapping[str, list[str]]:
    if query.filter.is_empty:
        return {column: sorted(breakdown.by[GroupBy(column)]) for column in COLUMNS}
    return suppressed.choices or choices_of(actor, query, is_own=is_own)

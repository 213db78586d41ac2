"""Reports of a tenant's usage and quality, from the rollups of days, or of 24 hours.

The counters of the rows add up to the total, except in reports by team, because a member of two
teams counts in both. A team has its current members, also for past days. Active users are counted
from sets of user IDs: the numbers of several days are never added up.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import QuerySet, Sum, TextField
from django.db.models.functions import Cast

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.models import Membership, Team, TeamMembership, Tenant, UsageDay, UsageHour
from tenants.models.rollup import SERVICE_KEYS_USER_ID
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.counters import COUNTER_NAMES, UsageCounters, sum_counters
from tenants.usage.reports.filters import NO_FILTER, ReportFilter, build_filter_condition
from tenants.usage.reports.suppression.filtered_suppression import NO_TEAM, build_filtered_usage
from tenants.usage.reports.suppression.small_groups import Suppression, find_suppressed_groups
from tenants.usage.rollups.operations import find_complete_until

MAX_DAYS: Final = 366
# ReportRow.key of all service keys, if grouped by user.
SERVICE_KEYS: Final = str(SERVICE_KEYS_USER_ID)


class GroupBy(StrEnum):
    DAY = "day"
    TEAM = "team"
    LANGUAGE = "language"
    EDITOR = "editor"
    MODEL = "model"
    VARIANT = "variant"
    USER = "user"  # only if `min_users` is 1


class ReportKind(StrEnum):
    USAGE = "usage"
    QUALITY = "quality"


# The permission for a report of the whole tenant, and the one for the actor's own usage.
PERMISSIONS: Final = {
    ReportKind.USAGE: (Permission.READ_USAGE, Permission.READ_OWN_USAGE),
    ReportKind.QUALITY: (Permission.READ_QUALITY, Permission.READ_OWN_QUALITY),
}


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """A period (UTC days, half-open, or 24 hours), its grouping and its filter."""

    start: date
    end: date  # exclusive
    group_by: GroupBy | None = None  # None: only the total
    filter: ReportFilter = NO_FILTER
    # A time in the last hour of the period, which then has 24 full hours. `start` and `end` are
    # ignored, and GroupBy.DAY groups by hour. None: the period is from `start` to `end`.
    hours_until: datetime | None = None

    @property
    def starts_at(self) -> datetime:
        if self.hours_until is None:
            return datetime.combine(self.start, time(), UTC)
        return self.ends_at - timedelta(days=1)

    @property
    def ends_at(self) -> datetime:
        if self.hours_until is None:
            return datetime.combine(self.end, time(), UTC)
        return self.hours_until.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)

    @property
    def previous_period(self) -> "ReportQuery":
        """The preceding period of the same length."""
        length = self.end - self.start
        hours_until = self.hours_until and self.hours_until - timedelta(days=1)
        return replace(self, start=self.start - length, end=self.start, hours_until=hours_until)

    @property
    def without_filter(self) -> "ReportQuery":
        """The same period without its filter."""
        return replace(self, filter=NO_FILTER)


@dataclass(frozen=True, slots=True)
class ReportRow:
    # A day or hour, the ID of a team or user, or a name. "": unknown, no team, or the total.
    key: str
    label: str  # display text
    users: int | None  # active users, without service keys; None: suppressed
    counts: UsageCounters | None  # None: suppressed
    suppression: Suppression | None = None


@dataclass(frozen=True, slots=True)
class Report:
    query: ReportQuery
    rows: list[ReportRow]
    total: ReportRow
    complete_until: datetime | None  # None: nothing was counted yet
    # Groups with fewer users are suppressed. 1: no group is, as in a report of own usage.
    min_users: int


@dataclass(frozen=True, slots=True)
class _GroupCounters:
    counts: UsageCounters
    users: frozenset[str]  # user IDs, without service keys


def read_report(*, actor: Actor, kind: ReportKind, query: ReportQuery) -> Report:
    """Return a report. Two to seven queries. Raises Forbidden, InvalidValue.

    If the tenant's reports suppress small groups, a report of the tenant's usage by user has only
    the total.
    """
    is_own = is_limited_to_own(actor, kind)
    check_report_period(query)
    with tenant_scope(actor.tenant_id):
        rollups = select_rollups(actor, query, is_own=is_own)
        min_users = 1 if is_own else read_min_group_size(actor)
        if min_users > 1 and query.group_by is GroupBy.USER:
            query = replace(query, group_by=None)
        groups, total = _read_groups_and_total(actor, rollups, query)
        labels = _read_labels(actor, query.group_by)
        if query.filter.is_empty:
            suppressed_total = find_total_suppression(kind, total.users, min_users)
            suppressed = _find_suppressed_groups(groups, total, query.group_by, min_users)
        else:
            suppressed_total, suppressed = _find_suppressed_in_filter(actor, query, min_users)
        until = find_complete_until(actor.tenant_id)
    if suppressed_total is not None and not query.filter.is_empty:
        # The sum of the groups would reveal the suppressed total. Without a filter, the groups of a
        # suppressed total are already suppressed, because they have no more users than the total.
        suppressed = dict.fromkeys(groups, suppressed_total)
    return Report(
        query=query,
        rows=[
            _to_row(key, group, labels, suppressed.get(key))
            for key, group in sorted(groups.items())
        ],
        total=_to_row("", total, {}, suppressed_total),
        complete_until=until,
        min_users=min_users,
    )


def is_limited_to_own(actor: Actor, kind: ReportKind) -> bool:
    """Return whether the actor may see only their own figures. Raises Forbidden."""
    tenant_permission, own_permission = PERMISSIONS[kind]
    if actor.has_permission(tenant_permission):
        return False
    actor.require(own_permission)
    return True


def get_min_group_size(*, actor: Actor) -> int:
    """Return the minimum size of groups in reports. One query. Raises Forbidden."""
    actor.require(Permission.READ_USAGE)
    with tenant_scope(actor.tenant_id):
        return read_min_group_size(actor)


def read_min_group_size(actor: Actor) -> int:
    """Return the minimum size of groups in reports. Checks no permission. One query."""
    return Tenant.objects.values_list("min_group_users", flat=True).get(id=actor.tenant_id)


def check_report_period(query: ReportQuery) -> None:
    """Check that the period has 1 to MAX_DAYS days, or 24 hours. Raises InvalidValue."""
    if query.hours_until is None and not 1 <= (query.end - query.start).days <= MAX_DAYS:
        raise InvalidValue(
            "end", "Choose a period of 1 to {most} days. `end` is not included.", most=MAX_DAYS
        )


def select_rollups(
    actor: Actor, query: ReportQuery, *, is_own: bool
) -> QuerySet[UsageDay] | QuerySet[UsageHour]:
    """Return the rollups of the query's period and filter; if `is_own`, only the actor's own."""
    all_rows = select_rollups_of_everybody(actor, begins_at=query.starts_at, query=query)
    rows = all_rows.filter(build_filter_condition(actor, query.filter))
    if not is_own:
        return rows
    return rows.none() if actor.user_id is None else rows.filter(user_id=actor.user_id)


def select_rollups_of_everybody(
    actor: Actor, *, begins_at: datetime, query: ReportQuery
) -> QuerySet[UsageDay] | QuerySet[UsageHour]:
    """Return the rollups of all users, without the filter, from `begins_at` to the query's end."""
    rows: QuerySet[UsageDay] | QuerySet[UsageHour]
    rows = UsageDay.objects.all() if query.hours_until is None else UsageHour.objects.all()
    return rows.filter(
        tenant_id=actor.tenant_id, starts_at__gte=begins_at, starts_at__lt=query.ends_at
    )


def _read_groups_and_total(
    actor: Actor, rollups: QuerySet[Any], query: ReportQuery
) -> tuple[dict[str, _GroupCounters], _GroupCounters]:
    if query.group_by is None:
        return {}, _read_total(rollups)
    if query.group_by in (GroupBy.TEAM, GroupBy.USER):
        counters_of = _read_counters_by_user(rollups)
        total = _sum_users(counters_of, users=counters_of)
        if query.group_by is GroupBy.USER:
            by_user = {str(user): _sum_users(counters_of, [user]) for user in counters_of}
            return by_user, total
        return _sum_by_team(actor, counters_of, query.filter), total
    groups = _read_groups(rollups, query)
    return groups, _sum_groups(groups)


def _sum_groups(groups: Mapping[str, _GroupCounters]) -> _GroupCounters:
    users = frozenset[str]().union(*(group.users for group in groups.values()))
    return _GroupCounters(sum_counters(group.counts for group in groups.values()), users)


def _read_total(rollups: QuerySet[Any]) -> _GroupCounters:
    user_ids = rollups.values_list("user_id", flat=True).distinct()
    return _GroupCounters(
        _to_counters(rollups.aggregate(**_SUMS)), exclude_services(map(str, user_ids))
    )


def _read_groups(rollups: QuerySet[Any], query: ReportQuery) -> dict[str, _GroupCounters]:
    group_by = query.group_by
    assert group_by is not None
    column = "starts_at" if group_by is GroupBy.DAY else group_by.value
    if group_by is GroupBy.DAY:
        return {
            format_time_key(query, sums[column]): _GroupCounters(
                _to_counters(sums), exclude_services(sums["user_ids"].split())
            )
            for sums in rollups.values(column).annotate(**_SUMS, user_ids=_USER_IDS)
        }
    users: defaultdict[str, list[str]] = defaultdict(list)
    for key, user_id in rollups.values_list(column, "user_id").distinct():
        users[key].append(str(user_id))
    return {
        sums[column]: _GroupCounters(_to_counters(sums), exclude_services(users[sums[column]]))
        for sums in rollups.values(column).annotate(**_SUMS)
    }


def _read_counters_by_user(rollups: QuerySet[Any]) -> dict[UUID, UsageCounters]:
    return {
        sums["user_id"]: _to_counters(sums) for sums in rollups.values("user_id").annotate(**_SUMS)
    }


def _sum_users(counters_of: Mapping[UUID, UsageCounters], users: Iterable[UUID]) -> _GroupCounters:
    user_ids = list(users)
    return _GroupCounters(
        sum_counters(counters_of[user] for user in user_ids),
        exclude_services(map(str, user_ids)),
    )


def _sum_by_team(
    actor: Actor, counters_of: Mapping[UUID, UsageCounters], report_filter: ReportFilter
) -> dict[str, _GroupCounters]:
    """Return the groups by team ID; if the filter contains a team, only that team.

    The group of another team would show the usage of the users who are in both teams.
    """
    if report_filter.team_id is not None:
        return (
            {str(report_filter.team_id): _sum_users(counters_of, users=counters_of)}
            if counters_of
            else {}
        )
    members: defaultdict[str, set[Any]] = defaultdict(set)
    for team_id, user_id in TeamMembership.objects.filter(tenant_id=actor.tenant_id).values_list(
        "team_id", "user_id"
    ):
        if user_id in counters_of:
            members[str(team_id)].add(user_id)
    if users_without_team := counters_of.keys() - set().union(*members.values()):
        members[NO_TEAM] = set(users_without_team)
    return {key: _sum_users(counters_of, users) for key, users in members.items()}


def _read_labels(actor: Actor, group_by: GroupBy | None) -> dict[str, str]:
    if group_by is GroupBy.USER:
        return _read_user_labels(actor)
    if group_by is not GroupBy.TEAM:
        return {}
    teams = Team.objects.filter(tenant_id=actor.tenant_id).values_list("id", "name")
    return {str(team_id): name for team_id, name in teams}


def _read_user_labels(actor: Actor) -> dict[str, str]:
    """Return the e-mail addresses of present and former members by user ID, without erased users.

    One query.
    """
    rows = Membership.objects.filter(tenant_id=actor.tenant_id, erased_at=None)
    return {str(user): email for user, email in rows.values_list("user_id", "user__email")}


def _find_suppressed_groups(
    groups: Mapping[str, _GroupCounters],
    total: _GroupCounters,
    group_by: GroupBy | None,
    min_users: int,
) -> dict[str, Suppression]:
    users_of = {key: groups[key].users for key in sorted(groups)}
    # A user of several teams counts in each, so the users of the groups do not add up to the total.
    all_users = total.users if group_by is GroupBy.TEAM else None
    return find_suppressed_groups(users_of, min_users=min_users, all_users=all_users)


def find_total_suppression(
    kind: ReportKind, users: frozenset[str], min_users: int
) -> Suppression | None:
    """Return why the total of a report without a filter is suppressed; None: it may be shown.

    The total of a usage report is never suppressed, because the tenant pays for it.
    """
    is_hidden = kind is ReportKind.QUALITY and 0 < len(users) < min_users
    return Suppression.TOO_FEW_USERS if is_hidden else None


def _find_suppressed_in_filter(
    actor: Actor, query: ReportQuery, min_users: int
) -> tuple[Suppression | None, dict[str, Suppression]]:
    """Return why the total of the filtered usage is suppressed, and the suppressed groups.

    One query, two with teams; none for the actor's own usage.
    """
    if min_users == 1:
        return None, {}
    group_by = query.group_by
    filtered_usage = build_filtered_usage(
        actor, query.filter, min_users=min_users, by_team=group_by is GroupBy.TEAM
    )
    rows = select_rollups_of_everybody(actor, begins_at=query.starts_at, query=query)
    if group_by is GroupBy.DAY:
        tables_by_time = {
            format_time_key(query, at): table
            for at, table in filtered_usage.read_tables_by_time(rows).items()
        }
        return (
            filtered_usage.find_suppression(filtered_usage.merge_tables(tables_by_time.values())),
            filtered_usage.find_suppressed_times(tables_by_time),
        )
    if group_by is None:
        return filtered_usage.find_suppression(filtered_usage.read_table(rows)), {}
    table = filtered_usage.read_table(rows, group_by.value)
    return (
        filtered_usage.find_suppression(table),
        filtered_usage.find_suppressed_groups(table, group_by.value),
    )


def _to_row(
    key: str, group: _GroupCounters, labels: Mapping[str, str], suppression: Suppression | None
) -> ReportRow:
    label = labels.get(key, key)
    if suppression is not None:
        return ReportRow(key, label, users=None, counts=None, suppression=suppression)
    return ReportRow(key, label, users=len(group.users), counts=group.counts)


def _to_counters(sums: Mapping[str, Any]) -> UsageCounters:
    return UsageCounters(**{name: int(sums[f"sum_{name}"] or 0) for name in COUNTER_NAMES})


def exclude_services(user_ids: Iterable[str]) -> frozenset[str]:
    return frozenset(user_ids) - {str(SERVICE_KEYS_USER_ID)}


def format_time_key(query: ReportQuery, starts_at: datetime) -> str:
    """Return the ReportRow.key of a day (2026-11-21) or hour (2026-11-21T22:00:00+00:00)."""
    at = starts_at.astimezone(UTC)
    return at.date().isoformat() if query.hours_until is None else at.isoformat()


# The user IDs of a day with duplicates, as one text. The same users occur on most days, so one text
# for each day saves parsing thousands of rows. DISTINCT would make Postgres sort the rollups with
# all their columns, on disk. Other dimensions do not use _USER_IDS: they have few groups, so each
# text would repeat each user many times.
_USER_IDS: Final = StringAgg(Cast("user_id", TextField()), " ")
# A sum is None if there are no rows. `default=0` would cost Django a millisecond more for each
# query.
_SUMS: Final = {f"sum_{name}": Sum(name) for name in COUNTER_NAMES}

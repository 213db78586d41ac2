"""A period's usage by several things at once, by time, language, editor, model and variant, from
one reading of the roll-ups: the pages' figures. `reports` has the same numbers, a grouping each.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection
from django.db.models import QuerySet

from tenants.models import UsageDay, UsageHour
from tenants.usage.reports.counters import COUNTER_NAMES, UsageCounters
from tenants.usage.reports.queries import GroupBy, ReportQuery, ReportRow, people, time_key
from tenants.usage.reports.suppression import Suppression, find_suppressed_groups

_COLUMN: Final = {
    GroupBy.DAY: "starts_at",
    GroupBy.LANGUAGE: "language",
    GroupBy.EDITOR: "editor",
    GroupBy.MODEL: "model",
    GroupBy.VARIANT: "variant",
}


@dataclass(frozen=True, slots=True)
class GroupCounters:
    counts: UsageCounters
    users: frozenset[str]  # services not counted


@dataclass(frozen=True, slots=True)
class Breakdown:
    every: GroupCounters
    by: Mapping[GroupBy, Mapping[str, GroupCounters]]


def compute_breakdown(
    rows: QuerySet[UsageDay] | QuerySet[UsageHour],
    asked: ReportQuery,
    by: Sequence[GroupBy],
    *,
    names: Sequence[str] = COUNTER_NAMES,
) -> Breakdown:
    """Inside the tenant's scope. `names`: of the counts that are wanted; the others stay 0, as
    adding each of them up takes its time. One query."""
    inner, parameters = (
        rows.order_by().values("user_id", *_COLUMN.values(), *names).query.sql_with_params()
    )
    with connection.cursor() as cursor:
        cursor.execute(_statement(inner, by, names), parameters)
        found = cursor.fetchall()
    every, groups = _NOTHING, defaultdict[GroupBy, dict[str, GroupCounters]](dict)
    for place, key, users, *sums in found:
        counts = UsageCounters(**dict(zip(names, map(int, sums), strict=True)))
        group = GroupCounters(counts, people((users or "").split()))
        if place is None:
            every = group
        else:
            is_time = by[place] is GroupBy.DAY
            name = time_key(asked, datetime.fromisoformat(key)) if is_time else key
            groups[by[place]][name] = group
    return Breakdown(every, groups)


def rows_of(
    groups: Mapping[str, GroupCounters], hidden: Mapping[str, Suppression]
) -> list[ReportRow]:
    """In the keys' order."""
    return [row_of(key, groups[key], hidden.get(key)) for key in sorted(groups)]


def find_small_groups(
    groups: Mapping[str, GroupCounters], min_users: int
) -> dict[str, Suppression]:
    """Of groups that together are all there is."""
    users_of = {key: groups[key].users for key in sorted(groups)}
    return find_suppressed_groups(users_of, min_users=min_users)


def row_of(key: str, group: GroupCounters, suppression: Suppression | None) -> ReportRow:
    if suppression is not None:
        return ReportRow(key, key, users=None, counts=None, suppression=suppression)
    return ReportRow(key, key, users=len(group.users), counts=group.counts)


def _statement(inner: str, by: Sequence[GroupBy], names: Sequence[str]) -> str:
    """Our own names only: what is asked about goes as parameters.

    First to the finest groups, in which a person is once, then from these to the ones asked for: of
    12,000 roll-ups 900, so that each further grouping costs little. Told as text, in which a person
    comes again and again: thousands of ids that are sorted, or parsed one by one, take longer.
    """
    columns = [_COLUMN[each] for each in by]
    fine = ", ".join(columns) or "()"
    of = f"{', '.join(columns)}, " if by else ""
    place = " ".join(f"WHEN GROUPING({column}) = 0 THEN {n}" for n, column in enumerate(columns))
    key = ", ".join(f"{column}::text" for column in columns)
    sets = ", ".join(["()", *(f"({column})" for column in columns)])
    which = f"CASE {place} END, coalesce({key})" if by else "NULL, NULL"
    fine_sums = ", ".join(f"sum({name}) AS {name}" for name in names)
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names)
    return f"""
        WITH fine AS MATERIALIZED (
            SELECT {of}string_agg(user_id::text, ' ') AS people, {fine_sums}
            FROM ({inner}) rolled GROUP BY {fine}
        )
        SELECT {which}, string_agg(people, ' '), {sums} FROM fine GROUP BY GROUPING SETS ({sets})
    """  # noqa: S608


_NOTHING: Final = GroupCounters(UsageCounters(), frozenset())

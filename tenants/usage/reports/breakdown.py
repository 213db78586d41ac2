"""Breakdown of a period's usage by several dimensions, from one read of the rollups.

The dimensions are time, language, editor, model and variant. For one dimension,
`queries.read_report` returns the same numbers.
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
from tenants.usage.reports.queries import (
    GroupBy,
    ReportQuery,
    ReportRow,
    exclude_services,
    format_time_key,
)
from tenants.usage.reports.suppression.small_groups import Suppression, find_suppressed_groups

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
    users: frozenset[str]  # without service keys


@dataclass(frozen=True, slots=True)
class Breakdown:
    total: GroupCounters
    groups: Mapping[GroupBy, Mapping[str, GroupCounters]]  # by dimension and ReportRow.key


def compute_breakdown(
    rows: QuerySet[UsageDay] | QuerySet[UsageHour],
    query: ReportQuery,
    dimensions: Sequence[GroupBy],
    *,
    names: Sequence[str] = COUNTER_NAMES,
) -> Breakdown:
    """Compute the breakdown. One query. Must run inside the tenant's scope.

    `names` are the requested counters. The other counters stay 0, because each sum takes time.
    """
    rollups_sql, parameters = (
        rows.order_by().values("user_id", *_COLUMN.values(), *names).query.sql_with_params()
    )
    with connection.cursor() as cursor:
        cursor.execute(_build_statement(rollups_sql, dimensions, names), parameters)
        sums_by_group = cursor.fetchall()
    total = _NO_USAGE
    groups = defaultdict[GroupBy, dict[str, GroupCounters]](dict)
    for index, key, users, *sums in sums_by_group:
        counts = UsageCounters(**dict(zip(names, map(int, sums), strict=True)))
        group = GroupCounters(counts, exclude_services((users or "").split()))
        if index is None:
            total = group
        else:
            is_time = dimensions[index] is GroupBy.DAY
            name = format_time_key(query, datetime.fromisoformat(key)) if is_time else key
            groups[dimensions[index]][name] = group
    return Breakdown(total, groups)


def build_rows(
    groups: Mapping[str, GroupCounters], suppressed: Mapping[str, Suppression]
) -> list[ReportRow]:
    """Return the rows sorted by key."""
    return [build_row(key, groups[key], suppressed.get(key)) for key in sorted(groups)]


def find_suppressed_keys(
    groups: Mapping[str, GroupCounters], min_users: int
) -> dict[str, Suppression]:
    """Return the groups that must be suppressed, and why. `groups` must be of unfiltered usage."""
    users_of = {key: groups[key].users for key in sorted(groups)}
    return find_suppressed_groups(users_of, min_users=min_users)


def build_row(key: str, group: GroupCounters, suppression: Suppression | None) -> ReportRow:
    if suppression is not None:
        return ReportRow(key, key, users=None, counts=None, suppression=suppression)
    return ReportRow(key, key, users=len(group.users), counts=group.counts)


def _build_statement(rollups_sql: str, dimensions: Sequence[GroupBy], names: Sequence[str]) -> str:
    """Return the statement. It contains names of columns, but no values: these are parameters.

    It first groups by all dimensions together, and then groups the result by each dimension, and
    once as a whole for the total. The first step reduces, for example, 12,000 rollups to 900 rows,
    so that each further grouping costs little. The user IDs of a group are joined in one text, with
    duplicates: removing the duplicates, or parsing the IDs one by one, would take longer.

    Columns of the result: the index of the dimension (NULL: the total), the key, the user IDs, and
    a sum for each of `names`. The key is the value of the row's dimension. The columns of the other
    dimensions are NULL in this row.
    """
    columns = [_COLUMN[dimension] for dimension in dimensions]
    all_columns = ", ".join(columns) or "()"
    column_list = f"{', '.join(columns)}, " if dimensions else ""
    # GROUPING(column) is 0 in the rows that are grouped by this column.
    dimension_index = " ".join(
        f"WHEN GROUPING({column}) = 0 THEN {n}" for n, column in enumerate(columns)
    )
    key = ", ".join(f"{column}::text" for column in columns)
    sets = ", ".join(["()", *(f"({column})" for column in columns)])
    dimension_and_key = (
        f"CASE {dimension_index} END, coalesce({key})" if dimensions else "NULL, NULL"
    )
    finest_sums = ", ".join(f"sum({name}) AS {name}" for name in names)
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names)
    return f"""
        WITH finest_groups AS MATERIALIZED (
            SELECT {column_list}string_agg(user_id::text, ' ') AS user_ids, {finest_sums}
            FROM ({rollups_sql}) rolled GROUP BY {all_columns}
        )
        SELECT {dimension_and_key}, string_agg(user_ids, ' '), {sums}
        FROM finest_groups GROUP BY GROUPING SETS ({sets})
    """  # noqa: S608


_NO_USAGE: Final = GroupCounters(UsageCounters(), frozenset())

"""Suppression of filtered usage and its groups.

The users of the filtered usage are compared with the users of all other usage of the period,
because the difference between filtered and unfiltered figures must reveal no single user, either.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Func, OuterRef, QuerySet, Subquery, TextField, Value

from tenants.models import Team, TeamMembership
from tenants.models.rollup import SERVICE_KEYS_USER_ID
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.filters import COLUMNS, ReportFilter
from tenants.usage.reports.suppression.cells import (
    TEAM,
    Cell,
    CellUsers,
    Dimensions,
    People,
    SuppressionTable,
)
from tenants.usage.reports.suppression.small_groups import Suppression, find_suppressed_groups

NO_TEAM: Final = ""  # the group of users without a team
# The user IDs of a group as one text: parsing one row for each ID would take longer.
_USER_IDS: Final = Func(
    ArrayAgg("user_id", distinct=True),
    Value(" "),
    function="array_to_string",
    output_field=TextField(),
)


@dataclass(frozen=True, slots=True)
class FilteredUsage:
    """A tenant's usage with a filter. The methods' parameter `rows` is the unfiltered rollups."""

    report_filter: ReportFilter
    members: Mapping[str, People]  # by team; empty: teams are not requested
    min_users: int
    team_names: Mapping[str, str]  # by ID; empty: teams are not requested

    def read_table(self, rows: QuerySet[Any], *extra_columns: str) -> SuppressionTable:
        """Return the suppression table by the filter's columns and `extra_columns`. One query."""
        columns = self._column_dimensions(*extra_columns)
        people_by_cell: defaultdict[Cell, set[str]] = defaultdict(set)
        for *cell, user_id in rows.order_by().values_list(*columns, "user_id").distinct():
            people_by_cell[tuple(cell)].add(str(user_id))
        return self._build_table(columns, people_by_cell)

    def read_tables_by_time(self, rows: QuerySet[Any]) -> dict[datetime, SuppressionTable]:
        """Return the suppression table of each hour or day. One query."""
        columns = self._column_dimensions()
        people_by_time: defaultdict[datetime, dict[Cell, Iterable[str]]] = defaultdict(dict)
        grouped = rows.order_by().values("starts_at", *columns).annotate(user_ids=_USER_IDS)
        for at, *cell, user_ids in grouped.values_list("starts_at", *columns, "user_ids"):
            people_by_time[at][tuple(cell)] = user_ids.split()
        return {at: self._build_table(columns, people_by_time[at]) for at in sorted(people_by_time)}

    def merge_tables(self, tables: Iterable[SuppressionTable]) -> SuppressionTable:
        """Return one table for several hours or days, from their tables."""
        people_by_cell: defaultdict[Cell, set[str]] = defaultdict(set)
        for table in tables:
            for cell, people in table.users.people_of.items():
                people_by_cell[cell] |= people
        return self._build_table(self._column_dimensions(), people_by_cell)

    def find_suppression(self, table: SuppressionTable) -> Suppression | None:
        """Return why the total of the filtered usage is suppressed; None: it may be shown."""
        dimensions = self._build_dimensions()
        return table.find_suppressed(dimensions).get(self._to_cell(dimensions))

    def find_suppressed_groups(self, table: SuppressionTable, name: str) -> dict[str, Suppression]:
        """Return the suppressed groups of the filtered usage by `name`, a column or TEAM."""
        dimensions = self._build_dimensions(name)
        index = dimensions.index(name)
        suppressed = table.find_suppressed(dimensions).items()
        return {
            cell[index]: why for cell, why in suppressed if self._is_in_filter(dimensions, cell)
        }

    def find_suppressed_times(
        self, tables_by_time: Mapping[str, SuppressionTable]
    ) -> dict[str, Suppression]:
        """Return the suppressed hours or days.

        An hour or day is suppressed if the total of a report on it alone would be suppressed.
        Further ones are suppressed if the total minus the shown ones would reveal a few users.
        """
        dimensions = self._build_dimensions()
        cell = self._to_cell(dimensions)
        suppressed = {
            at: why for at, table in tables_by_time.items() if (why := self.find_suppression(table))
        }
        people = {
            at: table.users.users_by_cell(dimensions).get(cell, People())
            for at, table in tables_by_time.items()
        }
        return find_suppressed_groups(
            people, min_users=self.min_users, already_suppressed=suppressed
        )

    def _build_table(
        self, columns: Dimensions, people_of: Mapping[Cell, Iterable[str]]
    ) -> SuppressionTable:
        users_by_cell = {
            cell: People(user_ids) - {str(SERVICE_KEYS_USER_ID)}
            for cell, user_ids in people_of.items()
        }
        members = self.members
        if members:
            all_people = People().union(*users_by_cell.values())
            members = {**members, NO_TEAM: all_people.difference(*members.values())}
        return SuppressionTable(CellUsers(columns, users_by_cell, members), self.min_users)

    def _column_dimensions(self, *extra_columns: str) -> Dimensions:
        """Return the dimensions of _build_dimensions, without TEAM."""
        return tuple(name for name in self._build_dimensions(*extra_columns) if name != TEAM)

    def _build_dimensions(self, *extra_columns: str) -> Dimensions:
        """Return the filter's dimensions and `extra_columns` in a fixed order; TEAM is last."""
        names = (*COLUMNS, TEAM)
        return tuple(
            name
            for name in names
            if name in extra_columns or self._selected_value(name) is not None
        )

    def _to_cell(self, dimensions: Dimensions) -> Cell:
        """Return the cell that is the filtered usage."""
        return tuple(self._selected_value(name) or "" for name in dimensions)

    def _is_in_filter(self, dimensions: Dimensions, cell: Cell) -> bool:
        selected_values = map(self._selected_value, dimensions)
        return all(
            selected is None or selected == value
            for selected, value in zip(selected_values, cell, strict=True)
        )

    def _selected_value(self, name: str) -> str | None:
        """Return the value that the filter has for a dimension; None: it is not filtered."""
        if name == TEAM:
            return None if self.report_filter.team_id is None else str(self.report_filter.team_id)
        value: str | None = getattr(self.report_filter, name)
        return value


def build_filtered_usage(
    actor: Actor, report_filter: ReportFilter, *, min_users: int, by_team: bool = False
) -> FilteredUsage:
    """Return the filtered usage. Must run inside the tenant's scope.

    `by_team`: the usage is grouped by team. One query if teams are needed, else none.
    """
    needs_teams = by_team or report_filter.team_id is not None
    teams = _read_teams(actor) if needs_teams else _NO_TEAMS
    return FilteredUsage(
        report_filter, members=teams.members, min_users=min_users, team_names=teams.names
    )


@dataclass(frozen=True, slots=True)
class _TeamMembers:
    names: Mapping[str, str]  # by team ID
    members: Mapping[str, People]  # by team ID, without teams that have no members


_NO_TEAMS: Final = _TeamMembers({}, {})


def _read_teams(actor: Actor) -> _TeamMembers:
    memberships = TeamMembership.objects.filter(tenant_id=OuterRef("tenant_id"))
    memberships_of_team = memberships.filter(team_id=OuterRef("id")).order_by().values("team_id")
    teams = Team.objects.filter(tenant_id=actor.tenant_id).order_by("name")
    user_ids_of_team = memberships_of_team.annotate(user_ids=_USER_IDS).values("user_ids")
    rows = teams.annotate(user_ids=Subquery(user_ids_of_team))
    team_rows = list(rows.values_list("id", "name", "user_ids"))
    return _TeamMembers(
        names={str(team_id): name for team_id, name, _user_ids in team_rows},
        members={
            str(team_id): People(user_ids.split())
            for team_id, _name, user_ids in team_rows
            if user_ids
        },
    )

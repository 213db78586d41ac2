"""Suppression for several dimensions at once, so that differences reveal no single user.

A cell is the usage with one value for each of some dimensions, for example Python in the editor
Zed, or Python in the team Red. "A few users" means at least one, but fewer than `min_users`, the
tenant's minimum (five by default).

1. A cell of a few users is suppressed.
2. A cell's values divide the whole usage into parts. For Python in the team Red, one part is the
   team's usage of other languages, and another is the usage of other languages outside the team. If
   a part has a few users, the cell is suppressed, because adding and subtracting cells and totals
   would reveal this part. (T. D. Friedman, L. J. Hoffman, "Towards a fail-safe approach to secure
   databases", IEEE Symposium on Security and Privacy, 1980: implied query sets.)
3. Rules 1 and 2 do not suffice if a dimension has more than two values: a total minus the cells
   that are still shown reveals a single suppressed cell (D. E. Denning, "Cryptography and data
   security", 1982, chapter 6). A line is the set of the cells that have the same values in all
   dimensions but one, for example all languages in the editor Zed. If a cell of a line is
   suppressed, further cells of the line are suppressed by the rules of `small_groups`. This is
   repeated for all lines of all dimensions, until no further cell is suppressed (complementary
   cell suppression).
4. A cell within a suppressed cell is suppressed: if Python is suppressed, so is Python in Zed.

ADR 0086 lists inferences that these rules do not prevent.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tenants.usage.reports.suppression.small_groups import Suppression, find_suppressed_groups

People = frozenset[str]  # user IDs
Cell = tuple[str, ...]  # a value for each dimension, in order
Dimensions = tuple[str, ...]  # names of columns, and TEAM
TEAM: Final = "team"  # the only dimension whose values overlap


@dataclass(frozen=True, slots=True)
class CellUsers:
    """The users of each cell. A cell that contains only usage of service keys has no users."""

    columns: Dimensions  # without TEAM
    people_of: Mapping[Cell, People]  # a cell has a value for each of `columns`
    members: Mapping[str, People]  # by team; empty: teams are not requested

    def users_by_cell(self, dimensions: Dimensions) -> dict[Cell, People]:
        """Return the users of each cell of the dimensions.

        Cells of a team without users are left out. If `dimensions` contains TEAM, it must be last.
        """
        columns = tuple(name for name in dimensions if name != TEAM)
        people_by_cell = self._group_by_columns(columns)
        if TEAM not in dimensions:
            return people_by_cell
        assert dimensions[-1] == TEAM
        return {
            (*cell, team): people & members
            for cell, people in people_by_cell.items()
            for team, members in self.members.items()
            if people & members
        }

    def _group_by_columns(self, columns: Dimensions) -> dict[Cell, People]:
        indexes = [self.columns.index(name) for name in columns]
        people_by_cell: defaultdict[Cell, set[str]] = defaultdict(set)
        for cell, people in self.people_of.items():
            people_by_cell[tuple(cell[index] for index in indexes)] |= people
        return {cell: People(people) for cell, people in people_by_cell.items()}


class SuppressionTable:
    """The suppressed cells of all combinations of dimensions, computed on request."""

    def __init__(self, cell_users: CellUsers, min_users: int) -> None:
        self.users = cell_users
        self._min_users = min_users
        # Without dimensions, the only cell is the total. It is not suppressed here.
        self._suppressed: dict[Dimensions, dict[Cell, Suppression]] = {(): {}}

    def find_suppressed(self, dimensions: Dimensions) -> Mapping[Cell, Suppression]:
        """Return the suppressed cells. If `dimensions` contains TEAM, it must be last."""
        if dimensions not in self._suppressed:
            self._suppressed[dimensions] = self._compute_suppressed(dimensions)
        return self._suppressed[dimensions]

    def _compute_suppressed(self, dimensions: Dimensions) -> dict[Cell, Suppression]:
        people_of = self.users.users_by_cell(dimensions)
        suppressed = self._apply_rules_1_2_and_4(dimensions, people_of)
        # Rule 3.
        num_before = -1
        while num_before != len(suppressed):
            num_before = len(suppressed)
            for index in range(len(dimensions)):
                for line, users_of_total in self._iterate_lines(dimensions, index, people_of):
                    suppressed_in_line = {
                        cell: suppressed[cell] for cell in line if cell in suppressed
                    }
                    suppressed |= find_suppressed_groups(
                        line,
                        min_users=self._min_users,
                        all_users=users_of_total,
                        already_suppressed=suppressed_in_line,
                    )
        return suppressed

    def _apply_rules_1_2_and_4(
        self, dimensions: Dimensions, people_of: Mapping[Cell, People]
    ) -> dict[Cell, Suppression]:
        suppressed = {}
        complement_groups = _ComplementGroups(self.users, dimensions)
        for cell, people in people_of.items():
            if self._is_too_small(people):
                suppressed[cell] = Suppression.TOO_FEW_USERS
            elif self._is_in_suppressed_cell(dimensions, cell) or any(
                map(self._is_too_small, complement_groups.iterate_parts(cell))
            ):
                suppressed[cell] = Suppression.COMPLEMENTARY
        return suppressed

    def _is_in_suppressed_cell(self, dimensions: Dimensions, cell: Cell) -> bool:
        indexes = range(len(dimensions))
        return any(
            _remove_at(cell, n) in self.find_suppressed(_remove_at(dimensions, n)) for n in indexes
        )

    def _is_too_small(self, people: People) -> bool:
        return 0 < len(people) < self._min_users

    def _iterate_lines(
        self, dimensions: Dimensions, index: int, people_of: Mapping[Cell, People]
    ) -> Iterator[tuple[dict[Cell, People], People | None]]:
        """Yield each line whose total is shown, and the users of this total.

        Rule 3 needs these users only for a line of teams, because only teams overlap. For other
        lines, they are None.
        """
        other_dimensions = _remove_at(dimensions, index)
        is_line_of_teams = dimensions[index] == TEAM
        users_of_totals = self.users.users_by_cell(other_dimensions) if is_line_of_teams else {}
        lines: defaultdict[Cell, dict[Cell, People]] = defaultdict(dict)
        for cell in sorted(people_of):
            lines[_remove_at(cell, index)][cell] = people_of[cell]
        for total, line in lines.items():
            if total not in self.find_suppressed(other_dimensions):
                yield line, users_of_totals.get(total)


class _ComplementGroups:
    """The users of the parts into which a cell's values divide the whole usage.

    A part is the usage with or without each of the cell's values.
    """

    def __init__(self, cell_users: CellUsers, dimensions: Dimensions) -> None:
        self._members = cell_users.members if TEAM in dimensions else None
        self._people_of = cell_users.users_by_cell(
            tuple(name for name in dimensions if name != TEAM)
        )
        self._parts_of: dict[Cell, list[People]] = {}

    def iterate_parts(self, cell: Cell) -> Iterator[People]:
        """Yield the users of each part."""
        if self._members is None:
            yield from self._divide_users(cell)
            return
        *column_values, team = cell  # TEAM is the last dimension
        members = self._members[team]
        for people in self._divide_users(tuple(column_values)):
            yield people & members
            yield people - members

    def _divide_users(self, cell: Cell) -> list[People]:
        """Return the users of each part, by the cell's values without a team."""
        if cell not in self._parts_of:
            users_of_parts: defaultdict[tuple[bool, ...], set[str]] = defaultdict(set)
            for other_cell, people in self._people_of.items():
                # A part is identified by the dimensions in which it has the cell's value.
                matches = tuple(map(str.__eq__, cell, other_cell))
                users_of_parts[matches] |= people
            self._parts_of[cell] = [People(people) for people in users_of_parts.values()]
        return self._parts_of[cell]


def _remove_at(values: tuple[str, ...], index: int) -> tuple[str, ...]:
    return values[:index] + values[index + 1 :]

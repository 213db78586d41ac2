"""Figures for several filters are suppressed, so that differences do not reveal small groups.

A cell is a combination of filters, such as the language Go in the editor Zed. A line is a row or a
column of such cells.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenants.usage.reports.suppression.cells import TEAM, Cell, CellUsers, People, SuppressionTable
from tenants.usage.reports.suppression.small_groups import Suppression

SMALL, COMPLEMENTARY = Suppression.TOO_FEW_USERS, Suppression.COMPLEMENTARY
LANGUAGE, EDITOR = "language", "editor"
MIN_USERS = 5


def users(first: int, count: int) -> People:
    return People(str(number) for number in range(first, first + count))


def suppressed(
    users_of: Mapping[Any, People],
    dimensions: tuple[str, ...],
    *,
    columns: tuple[str, ...] = (LANGUAGE, EDITOR),
    members: Mapping[str, People] | None = None,
) -> Mapping[Cell, Suppression]:
    return SuppressionTable(CellUsers(columns, users_of, members or {}), MIN_USERS).find_suppressed(
        dimensions
    )


def test_large_cells_are_shown() -> None:
    users_of = {
        cell: users(10 * place, 10)
        for place, cell in enumerate(product(("go", "python"), ("vim", "zed")))
    }

    assert suppressed(users_of, (LANGUAGE, EDITOR)) == {}


def test_a_filter_that_differs_from_its_whole_by_one_user_is_suppressed() -> None:
    """All of python minus python in zed would reveal the one user who writes it in vim."""
    users_of = {
        ("python", "zed"): users(0, 10),
        ("python", "vim"): users(0, 1),
        ("go", "zed"): users(10, 10),
        ("go", "vim"): users(20, 10),
    }

    suppressed_cells = suppressed(users_of, (LANGUAGE, EDITOR))

    assert suppressed_cells[("python", "vim")] is SMALL
    assert suppressed_cells[("python", "zed")] is COMPLEMENTARY


def test_a_user_with_neither_value_cannot_be_derived_from_combined_filters() -> None:
    """All users minus python minus zed plus python in zed would be the users with neither."""
    users_of = {
        ("python", "zed"): users(0, 10),
        ("python", "vim"): users(10, 10),
        ("go", "zed"): users(20, 10),
        ("go", "vim"): users(30, 1),
    }

    assert ("python", "zed") in suppressed(users_of, (LANGUAGE, EDITOR))


def test_a_user_outside_the_row_and_the_column_is_not_revealed() -> None:
    """One user is alone in two cells, (go, vim) and (rust, vim).

    In the column vim, each of the two cells hides the other. Both together are still one user. The
    other totals would reveal this user.
    """
    users_of = {
        ("python", "zed"): users(0, 50),
        ("python", "vim"): users(0, 10),
        ("python", "emacs"): users(10, 10),
        ("go", "zed"): users(60, 10),
        ("go", "vim"): users(99, 1),
        ("rust", "zed"): users(70, 10),
        ("rust", "vim"): users(99, 1),
    }

    assert ("python", "zed") in suppressed(users_of, (LANGUAGE, EDITOR))


def test_values_suppressed_in_a_report_are_suppressed_as_a_filter() -> None:
    """Rust is hidden with go, so that all minus the others does not reveal go."""
    users_of = {("go",): users(0, 2), ("rust",): users(2, 7), ("python",): users(9, 20)}

    suppressed_cells = suppressed(users_of, (LANGUAGE,), columns=(LANGUAGE,))

    assert suppressed_cells == {("go",): SMALL, ("rust",): COMPLEMENTARY}


def test_a_cell_suppressed_in_its_row_is_not_revealed_by_its_column() -> None:
    """Go in zed belongs to one user, so python in zed is hidden too.

    Python in zed could still be derived: all of python minus python in the other editors. So python
    is hidden in one of these editors too, then go in an editor, and so on.
    """
    users_of = {
        cell: users(100 * place, 10)
        for place, cell in enumerate(product(("go", "python", "rust"), ("vim", "zed", "emacs")))
    } | {("go", "zed"): users(900, 1)}

    suppressed_cells = suppressed(users_of, (LANGUAGE, EDITOR))

    # No suppressed cell is alone in its row or in its column.
    for place in (0, 1):
        for cell in suppressed_cells:
            line = [
                other_cell
                for other_cell in suppressed_cells
                if other_cell[1 - place] == cell[1 - place]
            ]
            assert len(line) > 1


def test_teams_that_differ_by_one_user_are_suppressed_within_a_filter() -> None:
    """In zed, the blue team is the red team plus one user."""
    users_of = {("zed",): users(0, 40), ("vim",): users(0, 40)}
    members = {"red": users(0, 10), "blue": users(0, 11), "green": users(15, 20)}

    suppressed_cells = suppressed(users_of, (EDITOR, TEAM), columns=(EDITOR,), members=members)

    assert ("zed", "red") in suppressed_cells
    assert ("zed", "green") not in suppressed_cells


def test_a_part_of_a_suppressed_team_is_suppressed() -> None:
    """The red team works only in zed, so its figure there reveals the team.

    The red team is the blue one and one more user, who is not in zed.
    """
    users_of = {("zed",): users(0, 10) | users(15, 30), ("vim",): users(10, 1) | users(30, 30)}
    members = {
        "red": users(0, 10),
        "blue": users(0, 11),
        "green": users(15, 6),
        "white": users(30, 30),
    }

    assert ("red",) in suppressed(users_of, (TEAM,), columns=(EDITOR,), members=members)
    assert ("zed", "red") in suppressed(
        users_of, (EDITOR, TEAM), columns=(EDITOR,), members=members
    )


def test_services_suppress_nothing_and_are_not_suppressed() -> None:
    users_of = {("go",): People(), ("python",): users(0, 5)}

    assert suppressed(users_of, (LANGUAGE,), columns=(LANGUAGE,)) == {}


used_by = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("pq")),
    st.frozensets(st.sampled_from("123456789"), max_size=9),
)


@given(used_by)
def test_no_shown_part_differs_from_its_whole_by_a_few_users(
    users_of: dict[Cell, People],
) -> None:
    """This holds no matter which of the filters are removed.

    A part is a shown cell. Its whole is the cell without some of its filters.
    """
    columns = ("one", "two", "three")
    table = SuppressionTable(CellUsers(columns, users_of, {}), MIN_USERS)

    for dimensions in (columns, columns[:2], columns[1:], columns[::2]):
        places = [columns.index(name) for name in dimensions]
        for shown_cell in (
            table.users.users_by_cell(dimensions).keys() - table.find_suppressed(dimensions).keys()
        ):
            for is_kept in product((True, False), repeat=len(shown_cell)):
                difference = users_of_dropped_filters(users_of, places, shown_cell, is_kept)
                assert not 0 < len(difference) < MIN_USERS


def users_of_dropped_filters(
    users_of: Mapping[Cell, People], places: list[int], shown_cell: Cell, is_kept: Iterable[bool]
) -> People:
    """Return the users that a cell gains if some of its filters are dropped."""
    outside_users = People()
    for cell, cell_users in users_of.items():
        matches = [cell[place] == value for place, value in zip(places, shown_cell, strict=True)]
        is_in_whole = all(
            is_equal or not keep for is_equal, keep in zip(matches, is_kept, strict=True)
        )
        if is_in_whole and not all(matches):
            outside_users |= cell_users
    return outside_users


@given(used_by)
def test_the_suppressed_cells_of_a_line_contain_enough_users(users_of: dict[Cell, People]) -> None:
    columns = ("one", "two", "three")
    table = SuppressionTable(CellUsers(columns, users_of, {}), MIN_USERS)
    suppressed_cells = table.find_suppressed(columns)

    for place in range(3):
        for total in table.users.users_by_cell(without(columns, place)):
            if total in table.find_suppressed(without(columns, place)):
                continue
            line = [cell for cell in users_of if without(cell, place) == total]
            hidden_users = People().union(
                *(users_of[cell] for cell in line if cell in suppressed_cells)
            )
            is_whole_line_suppressed = all(cell in suppressed_cells for cell in line)
            assert is_whole_line_suppressed or not 0 < len(hidden_users) < MIN_USERS


def without(values: tuple[str, ...], place: int) -> tuple[str, ...]:
    """Return the values except the one at this index."""
    return values[:place] + values[place + 1 :]

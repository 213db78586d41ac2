"""Figures for several filters are suppressed, so that differences do not reveal small groups."""

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


def people(first: int, count: int) -> People:
    return People(str(number) for number in range(first, first + count))


def hidden(
    people_of: Mapping[Any, People],
    dimensions: tuple[str, ...],
    *,
    columns: tuple[str, ...] = (LANGUAGE, EDITOR),
    members: Mapping[str, People] | None = None,
) -> Mapping[Cell, Suppression]:
    return SuppressionTable(
        CellUsers(columns, people_of, members or {}), MIN_USERS
    ).find_suppressed(dimensions)


def test_parts_that_are_large_in_each_direction_are_told() -> None:
    people_of = {
        cell: people(10 * place, 10)
        for place, cell in enumerate(product(("go", "python"), ("vim", "zed")))
    }

    assert hidden(people_of, (LANGUAGE, EDITOR)) == {}


def test_all_of_a_filter_but_one_person_is_not_told() -> None:
    """All of python minus python in zed would reveal the one user who writes it in vim."""
    people_of = {
        ("python", "zed"): people(0, 10),
        ("python", "vim"): people(0, 1),
        ("go", "zed"): people(10, 10),
        ("go", "vim"): people(20, 10),
    }

    found = hidden(people_of, (LANGUAGE, EDITOR))

    assert found[("python", "vim")] is SMALL
    assert found[("python", "zed")] is COMPLEMENTARY


def test_one_person_with_neither_is_not_told_by_both_and_each() -> None:
    """All, minus python, minus zed, plus python in zed would reveal the users with neither."""
    people_of = {
        ("python", "zed"): people(0, 10),
        ("python", "vim"): people(10, 10),
        ("go", "zed"): people(20, 10),
        ("go", "vim"): people(30, 1),
    }

    assert ("python", "zed") in hidden(people_of, (LANGUAGE, EDITOR))


def test_one_person_in_all_but_the_row_and_the_column_is_not_told() -> None:
    """The user is in two cells, which hide each other in their lines, but not in the sum of
    both."""
    people_of = {
        ("python", "zed"): people(0, 50),
        ("python", "vim"): people(0, 10),
        ("python", "emacs"): people(10, 10),
        ("go", "zed"): people(60, 10),
        ("go", "vim"): people(99, 1),
        ("rust", "zed"): people(70, 10),
        ("rust", "vim"): people(99, 1),
    }

    assert ("python", "zed") in hidden(people_of, (LANGUAGE, EDITOR))


def test_what_a_report_hides_is_not_told_as_a_filter() -> None:
    """Rust is hidden with go, so that all minus the others does not reveal go."""
    people_of = {("go",): people(0, 2), ("rust",): people(2, 7), ("python",): people(9, 20)}

    found = hidden(people_of, (LANGUAGE,), columns=(LANGUAGE,))

    assert found == {("go",): SMALL, ("rust",): COMPLEMENTARY}


def test_what_is_hidden_in_one_direction_is_not_told_by_the_other() -> None:
    """Go in zed belongs to one user, so python in zed is hidden too.

    It could still be derived from all of python minus the other editors. So one of these is hidden
    too, then one of go's, and so on.
    """
    people_of = {
        cell: people(100 * place, 10)
        for place, cell in enumerate(product(("go", "python", "rust"), ("vim", "zed", "emacs")))
    } | {("go", "zed"): people(900, 1)}

    found = hidden(people_of, (LANGUAGE, EDITOR))

    for place in (0, 1):
        for cell in found:
            line = [other for other in found if other[1 - place] == cell[1 - place]]
            assert len(line) > 1


def test_teams_that_differ_by_one_are_not_told_within_a_filter() -> None:
    """In zed, the blue team is the red team plus one user."""
    people_of = {("zed",): people(0, 40), ("vim",): people(0, 40)}
    members = {"red": people(0, 10), "blue": people(0, 11), "green": people(15, 20)}

    found = hidden(people_of, (EDITOR, TEAM), columns=(EDITOR,), members=members)

    assert ("zed", "red") in found
    assert ("zed", "green") not in found


def test_a_part_of_a_team_that_is_hidden_is_not_told() -> None:
    """The red team works only in zed, so its figure there reveals the team.

    The team equals the blue one except for one user, who is not in zed.
    """
    people_of = {("zed",): people(0, 10) | people(15, 30), ("vim",): people(10, 1) | people(30, 30)}
    members = {
        "red": people(0, 10),
        "blue": people(0, 11),
        "green": people(15, 6),
        "white": people(30, 30),
    }

    assert ("red",) in hidden(people_of, (TEAM,), columns=(EDITOR,), members=members)
    assert ("zed", "red") in hidden(people_of, (EDITOR, TEAM), columns=(EDITOR,), members=members)


def test_services_hide_nobody_and_are_not_hidden() -> None:
    people_of = {("go",): People(), ("python",): people(0, 5)}

    assert hidden(people_of, (LANGUAGE,), columns=(LANGUAGE,)) == {}


used_by = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("pq")),
    st.frozensets(st.sampled_from("123456789"), max_size=9),
)


@given(used_by)
def test_no_part_is_told_that_differs_from_its_whole_by_a_few(
    people_of: dict[Cell, People],
) -> None:
    """Whichever filter is removed, and all of them."""
    columns = ("one", "two", "three")
    parts = SuppressionTable(CellUsers(columns, people_of, {}), MIN_USERS)

    for dimensions in (columns, columns[:2], columns[1:], columns[::2]):
        places = [columns.index(name) for name in dimensions]
        for told in (
            parts.users.users_by_cell(dimensions).keys() - parts.find_suppressed(dimensions).keys()
        ):
            for kept in product((True, False), repeat=len(told)):
                difference = beside(people_of, places, told, kept)
                assert not 0 < len(difference) < MIN_USERS


def beside(
    people_of: Mapping[Cell, People], places: list[int], part: Cell, kept: Iterable[bool]
) -> People:
    """Return the users in the part with only the kept filters, without those of the part."""
    found = People()
    for cell, users in people_of.items():
        same = [cell[place] == value for place, value in zip(places, part, strict=True)]
        is_in = all(one or not keep for one, keep in zip(same, kept, strict=True))
        if is_in and not all(same):
            found |= users
    return found


@given(used_by)
def test_what_is_hidden_is_no_small_rest_of_any_line(people_of: dict[Cell, People]) -> None:
    columns = ("one", "two", "three")
    parts = SuppressionTable(CellUsers(columns, people_of, {}), MIN_USERS)
    found = parts.find_suppressed(columns)

    for place in range(3):
        for total in parts.users.users_by_cell(without(columns, place)):
            if total in parts.find_suppressed(without(columns, place)):
                continue
            line = [cell for cell in people_of if without(cell, place) == total]
            rest = People().union(*(people_of[cell] for cell in line if cell in found))
            assert not 0 < len(rest) < MIN_USERS or all(cell in found for cell in line)


def without(values: tuple[str, ...], place: int) -> tuple[str, ...]:
    return values[:place] + values[place + 1 :]

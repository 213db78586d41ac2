"""Small groups are suppressed, and cannot be derived by subtraction."""

from hypothesis import given
from hypothesis import strategies as st

from tenants.usage.reports.suppression.small_groups import Suppression, find_suppressed_groups

SMALL, COMPLEMENTARY = Suppression.TOO_FEW_USERS, Suppression.COMPLEMENTARY


def people(first: int, count: int) -> frozenset[str]:
    return frozenset(str(number) for number in range(first, first + count))


def test_groups_that_are_large_enough_are_shown() -> None:
    assert find_suppressed_groups({"go": people(0, 5), "python": people(0, 9)}, min_users=5) == {}


def test_a_small_group_takes_the_next_smallest_with_it() -> None:
    users_of = {"go": people(0, 2), "c": people(10, 30), "python": people(50, 9)}

    found = find_suppressed_groups(users_of, min_users=5)

    assert found == {"go": SMALL, "python": COMPLEMENTARY}


def test_two_small_groups_of_the_same_few_people_are_not_enough() -> None:
    users_of = {"go": people(0, 2), "c": people(0, 3), "python": people(0, 9)}

    found = find_suppressed_groups(users_of, min_users=5)

    assert found == {"go": SMALL, "c": SMALL, "python": COMPLEMENTARY}


def test_two_small_groups_that_are_many_together_need_no_third() -> None:
    users_of = {"go": people(0, 3), "c": people(3, 3), "python": people(0, 9)}

    assert find_suppressed_groups(users_of, min_users=5) == {"go": SMALL, "c": SMALL}


def test_services_are_no_people() -> None:
    assert find_suppressed_groups({"go": frozenset(), "c": people(0, 5)}, min_users=5) == {}


def test_one_is_a_minimum_that_hides_nothing() -> None:
    assert find_suppressed_groups({"go": people(0, 1), "c": people(0, 5)}, min_users=1) == {}


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("123456789"), max_size=9)
    ),
    st.integers(1, 10),
)
def test_what_is_left_by_subtraction_is_no_small_group(
    users_of: dict[str, frozenset[str]], min_users: int
) -> None:
    hidden = find_suppressed_groups(users_of, min_users=min_users)

    shown = users_of.keys() - hidden.keys()
    assert all(not users_of[key] or len(users_of[key]) >= min_users for key in shown)
    if hidden and shown:
        rest = frozenset[str]().union(*(users_of[key] for key in hidden))
        assert len(hidden) > 1
        assert len(rest) >= min_users


def test_who_is_in_two_teams_is_not_told_by_the_total() -> None:
    users_of = {"red": people(0, 10), "blue": people(8, 10)}

    found = find_suppressed_groups(users_of, min_users=5, everybody=people(0, 18))

    assert found == {"red": COMPLEMENTARY, "blue": COMPLEMENTARY}


def test_who_is_in_neither_of_two_teams_is_not_told_by_a_third_that_is_hidden_for_it() -> None:
    """Hiding the green team, whose members are all red too, would hide nothing."""
    users_of = {
        "": people(0, 2),
        "green": people(2, 5),
        "red": people(2, 8),
        "blue": people(10, 8),
    }

    found = find_suppressed_groups(users_of, min_users=5, everybody=people(0, 18))

    shown = users_of.keys() - found.keys()
    rest = people(0, 18).difference(*(users_of[key] for key in shown))
    assert found[""] == SMALL
    assert not 0 < len(rest) < 5


def test_teams_that_tell_of_nobody_are_shown() -> None:
    users_of = {"red": people(0, 10), "blue": people(5, 10), "green": people(15, 9)}

    assert find_suppressed_groups(users_of, min_users=5, everybody=people(0, 24)) == {}


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("123456789"), max_size=9)
    ),
    st.integers(1, 6),
)
def test_no_two_teams_and_the_total_tell_of_a_few(
    users_of: dict[str, frozenset[str]], min_users: int
) -> None:
    everybody = frozenset[str]().union(*users_of.values())
    hidden = find_suppressed_groups(users_of, min_users=min_users, everybody=everybody)

    shown = [users for key, users in users_of.items() if key not in hidden]
    for one in shown:
        for other in shown:
            signs = {
                each: 1 - (each in one) - (one is not other and each in other) for each in everybody
            }
            told = {each for each, sign in signs.items() if sign}
            assert not 0 < len(told) < min_users
    rest = everybody.difference(*shown)
    assert not shown or not 0 < len(rest) < min_users

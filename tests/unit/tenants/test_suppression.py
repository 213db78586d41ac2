"""Small groups are suppressed, and cannot be derived by subtraction."""

from hypothesis import given
from hypothesis import strategies as st

from tenants.usage.reports.suppression.small_groups import Suppression, find_suppressed_groups

SMALL, COMPLEMENTARY = Suppression.TOO_FEW_USERS, Suppression.COMPLEMENTARY


def users(first: int, count: int) -> frozenset[str]:
    return frozenset(str(number) for number in range(first, first + count))


def test_groups_that_are_large_enough_are_shown() -> None:
    assert find_suppressed_groups({"go": users(0, 5), "python": users(0, 9)}, min_users=5) == {}


def test_a_small_group_suppresses_the_next_smallest_too() -> None:
    users_of = {"go": users(0, 2), "c": users(10, 30), "python": users(50, 9)}

    suppressed = find_suppressed_groups(users_of, min_users=5)

    assert suppressed == {"go": SMALL, "python": COMPLEMENTARY}


def test_two_small_groups_of_the_same_users_suppress_a_third() -> None:
    users_of = {"go": users(0, 2), "c": users(0, 3), "python": users(0, 9)}

    suppressed = find_suppressed_groups(users_of, min_users=5)

    assert suppressed == {"go": SMALL, "c": SMALL, "python": COMPLEMENTARY}


def test_two_small_groups_with_enough_users_together_suppress_no_third() -> None:
    users_of = {"go": users(0, 3), "c": users(3, 3), "python": users(0, 9)}

    assert find_suppressed_groups(users_of, min_users=5) == {"go": SMALL, "c": SMALL}


def test_services_count_as_no_users() -> None:
    assert find_suppressed_groups({"go": frozenset(), "c": users(0, 5)}, min_users=5) == {}


def test_a_minimum_of_one_suppresses_nothing() -> None:
    assert find_suppressed_groups({"go": users(0, 1), "c": users(0, 5)}, min_users=1) == {}


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("123456789"), max_size=9)
    ),
    st.integers(1, 10),
)
def test_no_small_group_can_be_derived_by_subtraction(
    users_of: dict[str, frozenset[str]], min_users: int
) -> None:
    hidden = find_suppressed_groups(users_of, min_users=min_users)

    shown_groups = users_of.keys() - hidden.keys()
    assert all(not users_of[group] or len(users_of[group]) >= min_users for group in shown_groups)
    if hidden and shown_groups:
        hidden_users = frozenset[str]().union(*(users_of[group] for group in hidden))
        assert len(hidden) > 1
        assert len(hidden_users) >= min_users


def test_overlapping_teams_do_not_reveal_their_common_users_by_the_total() -> None:
    users_of = {"red": users(0, 10), "blue": users(8, 10)}

    suppressed = find_suppressed_groups(users_of, min_users=5, all_users=users(0, 18))

    assert suppressed == {"red": COMPLEMENTARY, "blue": COMPLEMENTARY}


def test_users_without_a_team_are_not_revealed_by_the_total() -> None:
    """All members of the green team are in the red one too, so hiding green would hide nobody."""
    users_of = {
        "": users(0, 2),
        "green": users(2, 5),
        "red": users(2, 8),
        "blue": users(10, 8),
    }

    suppressed = find_suppressed_groups(users_of, min_users=5, all_users=users(0, 18))

    shown_groups = users_of.keys() - suppressed.keys()
    remaining_users = users(0, 18).difference(*(users_of[group] for group in shown_groups))
    assert suppressed[""] == SMALL
    assert not 0 < len(remaining_users) < 5


def test_teams_that_reveal_no_small_group_are_shown() -> None:
    users_of = {"red": users(0, 10), "blue": users(5, 10), "green": users(15, 9)}

    assert find_suppressed_groups(users_of, min_users=5, all_users=users(0, 24)) == {}


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("123456789"), max_size=9)
    ),
    st.integers(1, 6),
)
def test_two_teams_and_the_total_reveal_no_small_group(
    users_of: dict[str, frozenset[str]], min_users: int
) -> None:
    all_users = frozenset[str]().union(*users_of.values())
    hidden = find_suppressed_groups(users_of, min_users=min_users, all_users=all_users)

    shown_teams = [members for team, members in users_of.items() if team not in hidden]
    for first in shown_teams:
        for second in shown_teams:
            # The total minus both teams: users of both teams are subtracted twice.
            signs = {
                user: 1 - (user in first) - (first is not second and user in second)
                for user in all_users
            }
            revealed = {user for user, sign in signs.items() if sign}
            assert not 0 < len(revealed) < min_users
    remaining_users = all_users.difference(*shown_teams)
    assert not shown_teams or not 0 < len(remaining_users) < min_users

"""Small groups are suppressed, and cannot be told by subtraction."""

from hypothesis import given
from hypothesis import strategies as st

from tenants.metrics.suppress import Suppression, suppressed

SMALL, COMPLEMENTARY = Suppression.SMALL, Suppression.COMPLEMENTARY


def people(first: int, count: int) -> frozenset[str]:
    return frozenset(str(number) for number in range(first, first + count))


def test_groups_that_are_large_enough_are_shown() -> None:
    assert suppressed({"go": people(0, 5), "python": people(0, 9)}, min_users=5) == {}


def test_a_small_group_takes_the_next_smallest_with_it() -> None:
    users_of = {"go": people(0, 2), "c": people(10, 30), "python": people(50, 9)}

    found = suppressed(users_of, min_users=5)

    assert found == {"go": SMALL, "python": COMPLEMENTARY}


def test_two_small_groups_of_the_same_few_people_are_not_enough() -> None:
    users_of = {"go": people(0, 2), "c": people(0, 3), "python": people(0, 9)}

    found = suppressed(users_of, min_users=5)

    assert found == {"go": SMALL, "c": SMALL, "python": COMPLEMENTARY}


def test_two_small_groups_that_are_many_together_need_no_third() -> None:
    users_of = {"go": people(0, 3), "c": people(3, 3), "python": people(0, 9)}

    assert suppressed(users_of, min_users=5) == {"go": SMALL, "c": SMALL}


def test_services_are_no_people() -> None:
    assert suppressed({"go": frozenset(), "c": people(0, 5)}, min_users=5) == {}


def test_one_is_a_minimum_that_hides_nothing() -> None:
    assert suppressed({"go": people(0, 1), "c": people(0, 5)}, min_users=1) == {}


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("123456789"), max_size=9)
    ),
    st.integers(1, 10),
)
def test_what_is_left_by_subtraction_is_no_small_group(
    users_of: dict[str, frozenset[str]], min_users: int
) -> None:
    hidden = suppressed(users_of, min_users=min_users)

    shown = users_of.keys() - hidden.keys()
    assert all(not users_of[key] or len(users_of[key]) >= min_users for key in shown)
    if hidden and shown:
        rest = frozenset[str]().union(*(users_of[key] for key in hidden))
        assert len(hidden) > 1
        assert len(rest) >= min_users

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret_ls.edit_distance import edit_distance

words = st.text(alphabet="abc😀", max_size=12)


def reference_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for index, left in enumerate(one, 1):
        following = [index]
        for place, right in enumerate(other, 1):
            change = row[place - 1] + (left != right)
            following.append(min(row[place] + 1, following[-1] + 1, change))
        row = following
    return row[-1]


@given(words, words)
def test_the_distance_equals_the_reference(one: str, other: str) -> None:
    assert edit_distance(one, other) == reference_distance(one, other)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("", "", 0),
        ("", "ab", 2),
        ("ab", "", 2),
        ("kitten", "sitting", 3),
        ("a" * 500, "a" * 499, 1),
    ],
)
def test_known_distances(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other) == distance

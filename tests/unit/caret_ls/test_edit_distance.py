"""The edit distance, compared with a simple implementation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret_ls.edit_distance import edit_distance

words = st.text(alphabet="abc😀", max_size=12)


def reference_distance(first: str, second: str) -> int:
    """Compute the Levenshtein distance row by row in the table of all prefixes."""
    row = list(range(len(second) + 1))
    for row_number, first_character in enumerate(first, 1):
        next_row = [row_number]
        for column, second_character in enumerate(second, 1):
            deletion, insertion = row[column] + 1, next_row[-1] + 1
            replacement = row[column - 1] + (first_character != second_character)
            next_row.append(min(deletion, insertion, replacement))
        row = next_row
    return row[-1]


@given(words, words)
def test_the_distance_equals_the_reference(first: str, second: str) -> None:
    assert edit_distance(first, second) == reference_distance(first, second)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("", "", 0),
        ("", "ab", 2),
        ("ab", "", 2),
        ("kitten", "sitting", 3),
        ("a" * 500, "a" * 499, 1),
    ],
)
def test_example_pairs_have_the_expected_distance(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance

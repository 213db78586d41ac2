"""One canonical form for each value, however it was stored in between."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.foundation.crypto.canonical_json import canonicalize, to_exact_numbers

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(JSON)
def test_every_exact_value_can_be_spelt_and_is_read_as_it_was(value: Any) -> None:
    document = {"value": to_exact_numbers(value)}

    assert to_exact_numbers(json.loads(canonicalize(document))) == document


@given(JSON)
def test_exact_a_second_time_changes_nothing(value: Any) -> None:
    assert to_exact_numbers(to_exact_numbers(value)) == to_exact_numbers(value)


def test_members_are_sorted_and_blanks_left_out() -> None:
    assert (
        canonicalize({"b": [1, 2.5, None], "a": "ä\n"}) == '{"a":"ä\\n","b":[1,2.5,null]}'.encode()
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 - 1, 2**53 - 1),
        (2**53, "9007199254740992"),
        (-(2**53), "-9007199254740992"),
        (1.0, 1),
        (1e22, "1" + "0" * 22),
        (True, True),
        (0.1, 0.1),
    ],
)
def test_numbers_that_would_be_read_as_others_become_texts(value: object, expected: object) -> None:
    assert to_exact_numbers(value) == expected
    assert type(to_exact_numbers(value)) is type(expected)

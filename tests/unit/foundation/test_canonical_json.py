"""The canonical JSON form of values: equal values have the same bytes, however they were stored."""

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
def test_values_with_exact_numbers_survive_encoding_and_decoding(value: Any) -> None:
    document = {"value": to_exact_numbers(value)}

    assert to_exact_numbers(json.loads(canonicalize(document))) == document


@given(JSON)
def test_conversion_to_exact_numbers_is_idempotent(value: Any) -> None:
    assert to_exact_numbers(to_exact_numbers(value)) == to_exact_numbers(value)


def test_members_are_sorted_and_whitespace_is_omitted() -> None:
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
        (1e23, "1" + "0" * 23),
        (True, True),
        (0.1, 0.1),
    ],
)
def test_numbers_without_an_exact_json_form_become_strings(value: object, expected: object) -> None:
    """A float without a fraction becomes an integer first. Other numbers stay unchanged.

    JSON represents integers exactly only up to 2**53 - 1.
    """
    assert to_exact_numbers(value) == expected
    assert type(to_exact_numbers(value)) is type(expected)

"""Policies as JSON: what is read, what is refused and how it is said."""

from typing import Any

import pytest

from caret.contracts.policy import Mode
from tenants.errors import Invalid
from tenants.policies.document import (
    DEFAULT_POLICY,
    MAX_CONCURRENT_COMPLETIONS,
    read_policy,
    write_policy,
)


def document(**changes: Any) -> dict[str, Any]:
    return write_policy(DEFAULT_POLICY) | changes


def test_a_policy_is_read_as_it_was_written() -> None:
    assert read_policy(document()) == DEFAULT_POLICY


def test_equal_policies_are_equal_documents() -> None:
    assert write_policy(DEFAULT_POLICY)["features"] == sorted(mode.value for mode in Mode)


def test_a_policy_may_switch_everything_off() -> None:
    assert read_policy(document(features=[])).features == frozenset()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (document(features=["mind_reading"]), "features[0]"),
        (document(features="inline"), "features"),
        (document(max_concurrent_completions=0), "max_concurrent_completions"),
        (document(max_concurrent_completions=-1), "max_concurrent_completions"),
        (
            document(max_concurrent_completions=MAX_CONCURRENT_COMPLETIONS + 1),
            "max_concurrent_completions",
        ),
        (document(max_concurrent_completions="8"), "max_concurrent_completions"),
        (document(isolation="none"), "isolation"),
        (document(content_exclusion={"*": [""]}), "content_exclusion"),
        (document(content_exclusion={"": ["*"]}), "content_exclusion"),
        (document(content_exclusion={"*": ["a\0b"]}), "content_exclusion"),
        (document(content_exclusion={"*": ["x" * 201]}), "content_exclusion"),
        (document(content_exclusion={"x" * 201: ["*"]}), "content_exclusion"),
        (document(content_exclusion={"*": ["x"] * 201}), "content_exclusion"),
        (document(content_exclusion={"a": ["x"] * 101, "b": ["x"] * 100}), "content_exclusion"),
        (document(content_exclusion={str(n): [] for n in range(201)}), "content_exclusion"),
        (document(content_exclusion={"*": ["\ud800"]}), "content_exclusion"),
        (document(surprise=1), "policy"),
        ({}, "policy"),
        ([], "policy"),
        (None, "policy"),
    ],
)
def test_a_malformed_policy_is_refused_and_the_field_is_named(wrong: object, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_policy(wrong)

    assert caught.value.field == field


def test_the_largest_policy_is_read() -> None:
    largest = document(content_exclusion={"*": ["x" * 200] * 100, "y" * 200: ["*"] * 100})

    assert len(read_policy(largest).content_exclusion["*"]) == 100

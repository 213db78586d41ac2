"""Policies as JSON: valid and invalid documents, and their error messages."""

from typing import Any

import pytest

from caret.contracts.policy import Mode, PolicyLimits, RateLimit, Tier
from tenants.base.errors import InvalidValue
from tenants.policy.document import (
    DEFAULT_POLICY,
    MAX_BURST,
    MAX_CONCURRENT_COMPLETIONS,
    MAX_EXCLUDED_REPOSITORIES,
    MAX_EXCLUSIONS,
    MAX_GLOB_CHARS,
    MAX_PER_MINUTE,
    MAX_RETRIEVAL_GLOBS,
    MAX_TOKENS_PER_DAY,
    parse_policy,
    serialize_policy,
)


def document(**changes: Any) -> dict[str, Any]:
    return serialize_policy(DEFAULT_POLICY) | changes


def test_a_serialized_policy_can_be_parsed() -> None:
    assert parse_policy(document()) == DEFAULT_POLICY


def test_the_features_in_a_document_are_sorted() -> None:
    assert serialize_policy(DEFAULT_POLICY)["features"] == sorted(mode.value for mode in Mode)


def test_a_policy_may_disable_all_features() -> None:
    assert parse_policy(document(features=[])).features == frozenset()


def _with_limits(**limits: Any) -> dict[str, Any]:
    return document(limits=limits)


def _rate(per_minute: Any, burst: Any) -> dict[str, Any]:
    return {"per_minute": per_minute, "burst": burst}


def test_a_policy_without_limits_is_read() -> None:
    without_limits = {name: value for name, value in document().items() if name != "limits"}

    assert parse_policy(without_limits).limits == PolicyLimits()


def test_limits_are_parsed() -> None:
    policy = _with_limits(
        tenant=_rate(MAX_PER_MINUTE, 1),
        key=_rate(1, MAX_BURST),
        tokens_per_day={"quality": MAX_TOKENS_PER_DAY},
    )

    assert parse_policy(policy).limits == PolicyLimits(
        tenant=RateLimit(per_minute=MAX_PER_MINUTE, burst=1),
        key=RateLimit(per_minute=1, burst=MAX_BURST),
        tokens_per_day={Tier.QUALITY: MAX_TOKENS_PER_DAY},
    )


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (_with_limits(user=_rate(0, 5)), "limits.user.per_minute"),
        (_with_limits(user=_rate(-60, 5)), "limits.user.per_minute"),
        (_with_limits(tenant=_rate(MAX_PER_MINUTE + 1, 5)), "limits.tenant.per_minute"),
        (_with_limits(key=_rate(60, 0)), "limits.key.burst"),
        (_with_limits(key=_rate(60, MAX_BURST + 1)), "limits.key.burst"),
        (_with_limits(key=_rate(10**400, 1)), "limits.key.per_minute"),
        (_with_limits(key=_rate(60.5, 1)), "limits.key.per_minute"),
        (_with_limits(key={"per_minute": 60}), "limits.key"),
        (_with_limits(tokens_per_day={"fast": 0}), "limits.tokens_per_day.fast"),
        (_with_limits(tokens_per_day={"fast": -1}), "limits.tokens_per_day.fast"),
        (
            _with_limits(tokens_per_day={"fast": MAX_TOKENS_PER_DAY + 1}),
            "limits.tokens_per_day.fast",
        ),
        (_with_limits(hour=_rate(1, 1)), "limits"),
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
        (document(content_exclusion={"*": ["x" * (MAX_GLOB_CHARS + 1)]}), "content_exclusion"),
        (document(content_exclusion={"x" * (MAX_GLOB_CHARS + 1): ["*"]}), "content_exclusion"),
        (document(content_exclusion={"*": ["x"] * (MAX_EXCLUSIONS + 1)}), "content_exclusion"),
        (
            document(content_exclusion={"a": ["x"] * MAX_EXCLUSIONS, "b": ["x"]}),
            "content_exclusion",
        ),
        (
            document(content_exclusion={str(n): [] for n in range(MAX_EXCLUDED_REPOSITORIES + 1)}),
            "content_exclusion",
        ),
        (document(content_exclusion={"*": ["\ud800"]}), "content_exclusion"),
        (document(retrieval=[""]), "retrieval"),
        (document(retrieval=["x" * (MAX_GLOB_CHARS + 1)]), "retrieval"),
        (document(retrieval=["a\0b"]), "retrieval"),
        (document(retrieval=["x"] * (MAX_RETRIEVAL_GLOBS + 1)), "retrieval"),
        (document(retrieval="*"), "retrieval"),
        (document(surprise=1), "policy"),
        ({}, "policy"),
        ([], "policy"),
        (None, "policy"),
    ],
)
def test_an_invalid_policy_is_rejected_and_its_field_named(policy: object, field: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        parse_policy(policy)

    assert exc_info.value.field == field


def test_the_largest_policy_is_accepted() -> None:
    half = MAX_EXCLUSIONS // 2
    globs = {"*": ["x" * MAX_GLOB_CHARS] * half, "y" * MAX_GLOB_CHARS: ["*"] * half}

    exclusion = parse_policy(document(content_exclusion=globs)).content_exclusion

    assert {name: list(globs_of_name) for name, globs_of_name in exclusion.items()} == globs


def test_no_repository_is_indexed_by_default() -> None:
    assert DEFAULT_POLICY.retrieval == ()


def test_the_maximum_number_of_retrieval_globs_is_accepted() -> None:
    globs = ["acme/*"] * MAX_RETRIEVAL_GLOBS

    assert parse_policy(document(retrieval=globs)).retrieval == tuple(globs)

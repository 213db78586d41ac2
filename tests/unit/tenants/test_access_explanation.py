"""Explanations of policies: rules that block a request, and members that a change affects."""

import msgspec
import pytest

from caret.contracts.content_exclusion import is_excluded
from caret.contracts.policy import Feature, Mode, PolicyOverride, RateLimit
from caret.contracts.policy_override import apply_override
from tenants.policy.access_explanation import (
    TENANT,
    AccessQuery,
    BlockingRule,
    NamedOverride,
    explain_access,
)
from tenants.policy.diff import MemberPolicies, diff_policies
from tenants.policy.document import DEFAULT_POLICY

TEAM, USER = "team:Contractors", "user:ada@acme.example"
# Retrieval is not allowed either.
NO_CHAT = PolicyOverride(features=frozenset(Feature) - {Feature.CHAT, Feature.RETRIEVAL})
NO_KEYS = PolicyOverride(content_exclusion={"shop": ("src/keys/*",), "other": ("*",)})
POLICY = msgspec.structs.replace(DEFAULT_POLICY, retrieval=("*",))


def query(mode: Mode = Mode.INLINE, *, repository: str = "shop", path: str = "a.py") -> AccessQuery:
    return AccessQuery(mode, repository, path)


def rules(request: AccessQuery, *overrides: NamedOverride) -> list[BlockingRule]:
    return explain_access(POLICY, overrides, request).rules


def test_a_request_without_a_blocking_rule_is_allowed() -> None:
    assert rules(query(), NamedOverride(TEAM, NO_CHAT), NamedOverride(USER, NO_KEYS)) == []


def test_an_excluded_path_is_explained_by_the_glob_of_the_tenant() -> None:
    (rule,) = rules(query(path="deploy/.env"))

    assert (rule.policy_level, rule.field, rule.code) == (
        TENANT,
        "content_exclusion",
        "path_excluded",
    )
    assert rule.detail == '"*": "**/.env"'


def test_a_policy_that_requires_a_path_blocks_requests_without_one() -> None:
    strict = msgspec.structs.replace(POLICY, requires_path=True)

    (rule,) = explain_access(strict, [], query(path="")).rules

    assert (rule.policy_level, rule.field, rule.code) == (TENANT, "requires_path", "path_required")
    assert explain_access(strict, [], query(path="a.py")).rules == []


def test_each_override_is_named_with_its_rule() -> None:
    request = query(Mode.CHAT, path="src/keys/.env")

    blocking_rules = rules(request, NamedOverride(TEAM, NO_CHAT), NamedOverride(USER, NO_KEYS))

    assert [(rule.policy_level, rule.code) for rule in blocking_rules] == [
        (TENANT, "path_excluded"),
        (TEAM, "feature_disabled"),
        (USER, "path_excluded"),
    ]


def test_rules_for_another_repository_do_not_apply() -> None:
    assert rules(query(repository="tools"), NamedOverride(USER, NO_KEYS)) == []


@pytest.mark.parametrize("path", ["a.py", ".env", "x/.env", "src/keys/a", "a/b.pem", ""])
@pytest.mark.parametrize("repository", ["", "*", "shop", "other", "tools"])
def test_a_path_has_a_blocking_rule_if_and_only_if_gateways_exclude_it(
    repository: str, path: str
) -> None:
    request = query(repository=repository, path=path)

    explanation = explain_access(POLICY, [NamedOverride(USER, NO_KEYS)], request)

    policy = apply_override(POLICY, NO_KEYS)
    is_excluded_by_gateways = is_excluded(policy, repository=repository, path=path)
    assert bool(explanation.rules) == is_excluded_by_gateways


def test_the_explanation_states_if_retrieval_is_allowed() -> None:
    assert explain_access(POLICY, [], query()).may_retrieve
    assert not explain_access(POLICY, [NamedOverride(TEAM, NO_CHAT)], query()).may_retrieve


def test_a_diff_lists_affected_members() -> None:
    narrow = apply_override(apply_override(POLICY, NO_CHAT), NO_KEYS)
    members = [MemberPolicies("b@x", POLICY, narrow), MemberPolicies("a@x", POLICY, POLICY)]

    diff = diff_policies(members)

    assert (diff.num_members, diff.affected) == (2, ["b@x"])
    assert diff.features_lost == {Feature.CHAT: 1, Feature.RETRIEVAL: 1}
    assert diff.features_gained == {}
    assert diff.globs_added == [("other", "*"), ("shop", "src/keys/*")]
    assert diff.globs_removed == []
    assert diff.fields == {"content_exclusion": 1, "features": 1, "retrieval": 1}


def test_reverting_a_restriction_is_a_gain() -> None:
    narrow = apply_override(apply_override(POLICY, NO_CHAT), NO_KEYS)

    diff = diff_policies([MemberPolicies("a@x", narrow, POLICY)])

    assert diff.features_gained == {Feature.CHAT: 1, Feature.RETRIEVAL: 1}
    assert diff.globs_removed == [("other", "*"), ("shop", "src/keys/*")]


def test_a_changed_limit_is_a_changed_field() -> None:
    slow = apply_override(POLICY, PolicyOverride(user_limit=RateLimit(per_minute=1, burst=1)))

    assert diff_policies([MemberPolicies("a@x", POLICY, slow)]).fields == {"limits": 1}

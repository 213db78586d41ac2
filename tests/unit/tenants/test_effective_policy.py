"""The effective policy of a user, with the origin of each rule.

Also: the merge of two concurrent changes of a policy.
"""

import msgspec

from caret.contracts.policy import Feature, PolicyOverride, RateLimit
from tenants.policy.access_explanation import NamedOverride
from tenants.policy.document import DEFAULT_POLICY
from tenants.policy.effective_policy import resolve_policy
from tenants.policy.three_way_merge import merge_policies

SLOW = PolicyOverride(user_limit=RateLimit(per_minute=60, burst=5))
SLOWER = PolicyOverride(user_limit=RateLimit(per_minute=30, burst=3))
NO_CHAT = PolicyOverride(features=frozenset(Feature) - {Feature.CHAT})
TEAM = NamedOverride("team:Contractors", SLOW, version=2)
USER = NamedOverride("user:ada@acme.example", SLOWER, version=1)


def deciders(*overrides: NamedOverride) -> dict[str, list[str]]:
    """Return the names of the overrides that decide on each field."""
    decided_by = resolve_policy(DEFAULT_POLICY, list(overrides)).decided_by
    return {name: [override.name for override in deciding] for name, deciding in decided_by.items()}


def test_without_overrides_the_tenant_decides_everything() -> None:
    assert deciders() == {}


def test_an_override_that_restricts_a_field_is_named_for_it() -> None:
    assert deciders(TEAM, NamedOverride("team:QA", NO_CHAT)) == {
        "features": ["team:QA"],
        "limits": ["team:Contractors"],
    }


def test_the_override_with_the_lower_limit_decides() -> None:
    assert deciders(TEAM, USER) == {"limits": ["user:ada@acme.example"]}


def test_equal_overrides_are_both_named() -> None:
    equal = NamedOverride("team:QA", SLOW)

    assert deciders(TEAM, equal) == {"limits": ["team:Contractors", "team:QA"]}


def test_changes_of_different_fields_are_merged() -> None:
    own_policy = msgspec.structs.replace(DEFAULT_POLICY, has_public_code_filter=True)
    other_policy = msgspec.structs.replace(DEFAULT_POLICY, retrieval=("shop",))

    merged = merge_policies(base=DEFAULT_POLICY, proposed=own_policy, current=other_policy)

    assert merged.conflicts == []
    assert merged.policy == msgspec.structs.replace(
        DEFAULT_POLICY, has_public_code_filter=True, retrieval=("shop",)
    )


def test_a_field_changed_by_both_keeps_the_later_value_and_is_reported() -> None:
    own_policy = msgspec.structs.replace(DEFAULT_POLICY, retrieval=("mine",))
    other_policy = msgspec.structs.replace(DEFAULT_POLICY, retrieval=("theirs",))

    merged = merge_policies(base=DEFAULT_POLICY, proposed=own_policy, current=other_policy)

    assert merged.conflicts == ["retrieval"]
    assert merged.policy.retrieval == (
        "mine",
    )  # the proposed policy is saved after the current one


def test_the_same_change_by_both_is_no_conflict() -> None:
    same_policy = msgspec.structs.replace(DEFAULT_POLICY, retrieval=("shop",))

    merged = merge_policies(base=DEFAULT_POLICY, proposed=same_policy, current=same_policy)

    assert merged.conflicts == []

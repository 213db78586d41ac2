"""Policy overrides only restrict a policy, in any order and however often they are applied."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.content_exclusion import is_excluded
from caret.contracts.policy import (
    Feature,
    Isolation,
    Mode,
    PolicyLimits,
    PolicyOverride,
    RateLimit,
    TenantPolicy,
)
from caret.contracts.policy_override import apply_override, apply_overrides, features_of

REPOSITORIES = ("*", "shop", "tools")
GLOBS = ("**/.env", "*.pem", "src/*", "docs/**")
PATHS = (".env", "a/.env", "x.pem", "src/a.py", "docs/a/b.md", "README")

_names = st.none() | st.frozensets(st.sampled_from(["a", "b", "c"]))
_rates = st.none() | st.builds(RateLimit, st.integers(1, 9), st.integers(1, 9))
_globs = st.lists(st.sampled_from(GLOBS), unique=True).map(tuple)
_exclusions = st.dictionaries(st.sampled_from(REPOSITORIES), _globs)
_days = st.none() | st.integers(1, 9)
_policies = st.builds(
    TenantPolicy,
    features=st.frozensets(st.sampled_from(list(Mode))),
    content_exclusion=_exclusions,
    max_concurrent_completions=st.just(8),
    isolation=st.sampled_from(list(Isolation)),
    limits=st.builds(PolicyLimits, tenant=_rates, user=_rates, key=_rates),
    retrieval=st.sampled_from([(), ("*",)]),
    has_experiments=st.booleans(),
    has_secret_filter=st.booleans(),
    has_public_code_filter=st.booleans(),
    max_key_lifetime_days=_days,
    models=_names,
    regions=_names,
    is_mfa_required=st.booleans(),
)
_overrides = st.builds(
    PolicyOverride,
    features=st.none() | st.frozensets(st.sampled_from(list(Feature))),
    models=_names,
    regions=_names,
    content_exclusion=_exclusions,
    has_secret_filter=st.booleans(),
    has_public_code_filter=st.booleans(),
    user_limit=_rates,
    key_limit=_rates,
    max_key_lifetime_days=_days,
    is_mfa_required=st.booleans(),
)


# In the next three functions, None means that there is no restriction.


def are_within(narrow: frozenset[str] | None, wide: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def is_no_faster(narrow: RateLimit | None, wide: RateLimit | None) -> bool:
    if wide is None:
        return True
    return (
        narrow is not None and narrow.per_minute <= wide.per_minute and narrow.burst <= wide.burst
    )


def is_at_most(narrow: int | None, wide: int | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def is_at_most_as_permissive(narrow: TenantPolicy, wide: TenantPolicy) -> bool:
    """Return whether the narrow policy has at least the restrictions of the wide one.

    A filter or a duty of the wide policy must be in the narrow one, too: True >= False.
    """
    return (
        features_of(narrow) <= features_of(wide)
        and are_within(narrow.models, wide.models)
        and are_within(narrow.regions, wide.regions)
        and narrow.has_secret_filter >= wide.has_secret_filter
        and narrow.has_public_code_filter >= wide.has_public_code_filter
        and narrow.is_mfa_required >= wide.is_mfa_required
        and is_no_faster(narrow.limits.user, wide.limits.user)
        and is_no_faster(narrow.limits.key, wide.limits.key)
        and narrow.limits.tenant == wide.limits.tenant
        and is_at_most(narrow.max_key_lifetime_days, wide.max_key_lifetime_days)
        and all(
            is_excluded(narrow, repository=repository, path=path)
            for repository in REPOSITORIES
            for path in PATHS
            if is_excluded(wide, repository=repository, path=path)
        )
    )


@given(_policies, _overrides, _overrides)
def test_the_order_of_overrides_does_not_matter(
    policy: TenantPolicy, first: PolicyOverride, second: PolicyOverride
) -> None:
    assert apply_overrides(policy, [first, second]) == apply_overrides(policy, [second, first])


@given(_policies, _overrides)
def test_applying_an_override_twice_has_the_same_effect_as_once(
    policy: TenantPolicy, override: PolicyOverride
) -> None:
    assert apply_overrides(policy, [override, override]) == apply_override(policy, override)


@given(_policies, _overrides)
def test_an_override_never_permits_more(policy: TenantPolicy, override: PolicyOverride) -> None:
    assert is_at_most_as_permissive(apply_override(policy, override), policy)


@given(_policies, _overrides)
def test_the_restrictions_of_an_override_always_apply(
    policy: TenantPolicy, override: PolicyOverride
) -> None:
    restricted = apply_override(policy, override)

    assert override.features is None or features_of(restricted) <= override.features
    assert are_within(restricted.models, override.models)
    assert are_within(restricted.regions, override.regions)
    assert is_no_faster(restricted.limits.user, override.user_limit)
    assert is_no_faster(restricted.limits.key, override.key_limit)
    assert is_at_most(restricted.max_key_lifetime_days, override.max_key_lifetime_days)
    assert restricted.has_secret_filter >= override.has_secret_filter
    assert restricted.has_public_code_filter >= override.has_public_code_filter
    assert restricted.is_mfa_required >= override.is_mfa_required
    # A policy that excludes exactly the paths that the override excludes.
    policy_of_override = msgspec.structs.replace(
        policy, content_exclusion=override.content_exclusion
    )
    for repository in REPOSITORIES:
        for path in PATHS:
            if is_excluded(policy_of_override, repository=repository, path=path):
                assert is_excluded(restricted, repository=repository, path=path)


@given(_policies)
def test_an_empty_override_changes_nothing(policy: TenantPolicy) -> None:
    assert apply_override(policy, PolicyOverride()) == policy


def test_every_mode_is_a_feature() -> None:
    assert {mode.value for mode in Mode} <= {feature.value for feature in Feature}


def test_this_file_covers_every_field_of_an_override() -> None:
    """A new field also needs a strategy in `_overrides` and a check in the tests above."""
    assert set(PolicyOverride.__struct_fields__) == {
        "features",
        "models",
        "regions",
        "content_exclusion",
        "has_secret_filter",
        "has_public_code_filter",
        "user_limit",
        "key_limit",
        "max_key_lifetime_days",
        "is_mfa_required",
    }

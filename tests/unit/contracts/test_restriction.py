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
_layers = st.builds(
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


def are_within(narrow: frozenset[str] | None, wide: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def is_slower(narrow: RateLimit | None, wide: RateLimit | None) -> bool:
    if wide is None:
        return True
    return (
        narrow is not None and narrow.per_minute <= wide.per_minute and narrow.burst <= wide.burst
    )


def is_at_most(narrow: int | None, wide: int | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def allows_no_more(narrow: TenantPolicy, wide: TenantPolicy) -> bool:
    return (
        features_of(narrow) <= features_of(wide)
        and are_within(narrow.models, wide.models)
        and are_within(narrow.regions, wide.regions)
        and narrow.has_secret_filter >= wide.has_secret_filter
        and narrow.has_public_code_filter >= wide.has_public_code_filter
        and narrow.is_mfa_required >= wide.is_mfa_required
        and is_slower(narrow.limits.user, wide.limits.user)
        and is_slower(narrow.limits.key, wide.limits.key)
        and narrow.limits.tenant == wide.limits.tenant
        and is_at_most(narrow.max_key_lifetime_days, wide.max_key_lifetime_days)
        and all(
            is_excluded(narrow, repository=repository, path=path)
            for repository in REPOSITORIES
            for path in PATHS
            if is_excluded(wide, repository=repository, path=path)
        )
    )


@given(_policies, _layers, _layers)
def test_the_order_of_layers_does_not_matter(
    policy: TenantPolicy, one: PolicyOverride, other: PolicyOverride
) -> None:
    assert apply_overrides(policy, [one, other]) == apply_overrides(policy, [other, one])


@given(_policies, _layers)
def test_a_layer_that_comes_twice_counts_once(policy: TenantPolicy, layer: PolicyOverride) -> None:
    assert apply_overrides(policy, [layer, layer]) == apply_override(policy, layer)


@given(_policies, _layers)
def test_nothing_is_less_restricted_with_a_layer(
    policy: TenantPolicy, layer: PolicyOverride
) -> None:
    assert allows_no_more(apply_override(policy, layer), policy)


@given(_policies, _layers)
def test_what_a_layer_says_holds_whatever_the_tenant_says(
    policy: TenantPolicy, layer: PolicyOverride
) -> None:
    said = apply_override(policy, layer)

    assert layer.features is None or features_of(said) <= layer.features
    assert are_within(said.models, layer.models)
    assert are_within(said.regions, layer.regions)
    assert is_slower(said.limits.user, layer.user_limit)
    assert is_slower(said.limits.key, layer.key_limit)
    assert is_at_most(said.max_key_lifetime_days, layer.max_key_lifetime_days)
    assert said.has_secret_filter >= layer.has_secret_filter
    assert said.is_mfa_required >= layer.is_mfa_required
    alone = msgspec.structs.replace(policy, content_exclusion=layer.content_exclusion)
    for repository in REPOSITORIES:
        for path in PATHS:
            if is_excluded(alone, repository=repository, path=path):
                assert is_excluded(said, repository=repository, path=path)


@given(_policies)
def test_a_layer_that_says_nothing_changes_nothing(policy: TenantPolicy) -> None:
    assert apply_override(policy, PolicyOverride()) == policy


def test_every_mode_is_a_feature_of_its_name() -> None:
    assert {mode.value for mode in Mode} <= {feature.value for feature in Feature}


def test_every_field_of_a_layer_is_tried_here() -> None:
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

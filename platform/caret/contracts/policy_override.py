"""Applies the policy overrides of a team or a user to a tenant's policy, for both planes.

Rules, which tests verify as properties:

1. An override only restricts. It never allows what the policy without it forbids.
2. The order of overrides does not matter. Applying one twice has no further effect.
3. An empty override changes nothing.
"""

from collections.abc import Iterable
from functools import reduce

import msgspec

from caret.contracts.policy import Feature, PolicyLimits, PolicyOverride, RateLimit, TenantPolicy


def apply_override(policy: TenantPolicy, override: PolicyOverride) -> TenantPolicy:
    return msgspec.structs.replace(
        _restrict_features(policy, override.features),
        models=_intersect(policy.models, override.models),
        regions=_intersect(policy.regions, override.regions),
        content_exclusion=_merge_globs(policy.content_exclusion, override.content_exclusion),
        has_secret_filter=policy.has_secret_filter or override.has_secret_filter,
        has_public_code_filter=policy.has_public_code_filter or override.has_public_code_filter,
        limits=_lower_limits(policy.limits, override),
        max_key_lifetime_days=_choose_lower(
            policy.max_key_lifetime_days, override.max_key_lifetime_days
        ),
        is_mfa_required=policy.is_mfa_required or override.is_mfa_required,
    )


def apply_overrides(policy: TenantPolicy, overrides: Iterable[PolicyOverride]) -> TenantPolicy:
    return reduce(apply_override, overrides, policy)


def features_of(policy: TenantPolicy) -> frozenset[Feature]:
    """Return the features that are on."""
    on = {Feature(mode.value) for mode in policy.features}
    if policy.retrieval:
        on.add(Feature.RETRIEVAL)
    if policy.has_experiments:
        on.add(Feature.EXPERIMENTS)
    return frozenset(on)


def _restrict_features(policy: TenantPolicy, features: frozenset[Feature] | None) -> TenantPolicy:
    """Switch off the features that are not in `features`; None means all features."""
    if features is None:
        return policy
    return msgspec.structs.replace(
        policy,
        features=frozenset(mode for mode in policy.features if Feature(mode.value) in features),
        retrieval=policy.retrieval if Feature.RETRIEVAL in features else (),
        has_experiments=policy.has_experiments and Feature.EXPERIMENTS in features,
    )


def _intersect(
    first: frozenset[str] | None, second: frozenset[str] | None
) -> frozenset[str] | None:
    """Return the names in both sets; None means all names."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _merge_globs(
    first: dict[str, tuple[str, ...]], second: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Add the globs of `second` to those of `first`, for each repository name.

    The merged globs are sorted, so that the order of overrides does not matter. A repository name
    without globs adds nothing.
    """
    merged = {
        name: tuple(sorted({*first.get(name, ()), *globs}))
        for name, globs in second.items()
        if globs
    }
    return first | merged


def _lower_limits(limits: PolicyLimits, override: PolicyOverride) -> PolicyLimits:
    return msgspec.structs.replace(
        limits,
        user=_choose_lower_rate(limits.user, override.user_limit),
        key=_choose_lower_rate(limits.key, override.key_limit),
    )


def _choose_lower_rate(first: RateLimit | None, second: RateLimit | None) -> RateLimit | None:
    """Return the stricter of two rate limits; None means no limit."""
    if first is None or second is None:
        return second if first is None else first
    return RateLimit(
        per_minute=min(first.per_minute, second.per_minute), burst=min(first.burst, second.burst)
    )


def _choose_lower(first: int | None, second: int | None) -> int | None:
    """Return the smaller number; None means no limit."""
    return min((value for value in (first, second) if value is not None), default=None)

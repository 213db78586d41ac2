"""Platform limits: upper bounds of the limits in a tenant's policy, set by operators.

They are applied to the policy before gateways read it.
"""

from dataclasses import dataclass

import msgspec

from caret.contracts.policy import RateLimit, TenantPolicy


@dataclass(frozen=True, slots=True)
class PlatformLimits:
    """Upper bounds. None: no upper bound."""

    max_concurrent_completions: int | None  # for each gateway; at least 1
    max_requests_per_minute: int | None  # of the tenant over all gateways; at least 1


def apply_platform_limits(policy: TenantPolicy, platform_limits: PlatformLimits) -> TenantPolicy:
    """Return the policy restricted to the limits. Pure."""
    if (max_completions := platform_limits.max_concurrent_completions) is not None:
        max_concurrent = min(policy.max_concurrent_completions, max_completions)
        policy = msgspec.structs.replace(policy, max_concurrent_completions=max_concurrent)
    if (per_minute := platform_limits.max_requests_per_minute) is not None:
        limit = _intersect(policy.limits.tenant, per_minute)
        limits = msgspec.structs.replace(policy.limits, tenant=limit)
        policy = msgspec.structs.replace(policy, limits=limits)
    return policy


def _intersect(limit: RateLimit | None, per_minute: int) -> RateLimit:
    """Return the limit with both of its values restricted to `per_minute` requests."""
    if limit is None:
        return RateLimit(per_minute=per_minute, burst=per_minute)
    return RateLimit(
        per_minute=min(limit.per_minute, per_minute), burst=min(limit.burst, per_minute)
    )

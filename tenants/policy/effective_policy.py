"""The effective policy of one user, and the overrides that decide its fields. Pure."""

from dataclasses import dataclass

from caret.contracts.policy import TenantPolicy
from caret.contracts.policy_override import apply_override, apply_overrides
from tenants.policy.access_explanation import NamedOverride


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    policy: TenantPolicy
    # Field -> the overrides that decide it. A field without an entry has the tenant's value.
    decided_by: dict[str, list[NamedOverride]]
    overrides: list[NamedOverride]  # of the user's teams and of the user


def resolve_policy(policy: TenantPolicy, overrides: list[NamedOverride]) -> EffectivePolicy:
    """Apply a user's overrides to the tenant's policy, and find those that decide each field."""
    effective = apply_overrides(policy, (override.override for override in overrides))
    changed_names = [
        name
        for name in policy.__struct_fields__
        if getattr(policy, name) != getattr(effective, name)
    ]
    decided_by = {name: _find_deciding(name, policy, overrides) for name in changed_names}
    return EffectivePolicy(effective, decided_by, overrides)


def _find_deciding(
    name: str, policy: TenantPolicy, overrides: list[NamedOverride]
) -> list[NamedOverride]:
    """Return the overrides that decide a field's value.

    An override decides the value if the value would be different without this override. If several
    overrides set the same value, there may be no such override. In this case, return all overrides
    that change the field.
    """
    value = getattr(apply_overrides(policy, (override.override for override in overrides)), name)
    needed = [
        override
        for override in overrides
        if getattr(_apply_without(policy, overrides, override), name) != value
    ]
    return needed or [
        override
        for override in overrides
        if getattr(apply_override(policy, override.override), name) != getattr(policy, name)
    ]


def _apply_without(
    policy: TenantPolicy, overrides: list[NamedOverride], omitted: NamedOverride
) -> TenantPolicy:
    return apply_overrides(
        policy, (override.override for override in overrides if override is not omitted)
    )

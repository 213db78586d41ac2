"""What holds for one user, and which layers have made it so. Pure."""

from dataclasses import dataclass

from caret.contracts.policy import TenantPolicy
from caret.contracts.policy_override import restrict, restrict_all
from tenants.policy.access_explanation import NamedLayer


@dataclass(frozen=True, slots=True)
class Effective:
    policy: TenantPolicy
    decided_by: dict[str, list[NamedLayer]]  # field of the policy -> layers; absent: the tenant's
    layers: list[NamedLayer]  # of his teams and his own


def decide(policy: TenantPolicy, layers: list[NamedLayer]) -> Effective:
    narrowed = restrict_all(policy, (each.layer for each in layers))
    changed = [
        name
        for name in policy.__struct_fields__
        if getattr(policy, name) != getattr(narrowed, name)
    ]
    decided_by = {name: _deciding(name, policy, layers) for name in changed}
    return Effective(narrowed, decided_by, layers)


def _deciding(name: str, policy: TenantPolicy, layers: list[NamedLayer]) -> list[NamedLayer]:
    """Those without which another value would hold; where several say the same, all that say
    something."""
    value = getattr(restrict_all(policy, (each.layer for each in layers)), name)
    needed = [each for each in layers if getattr(_without(policy, layers, each), name) != value]
    return needed or [
        each
        for each in layers
        if getattr(restrict(policy, each.layer), name) != getattr(policy, name)
    ]


def _without(policy: TenantPolicy, layers: list[NamedLayer], left_out: NamedLayer) -> TenantPolicy:
    return restrict_all(policy, (each.layer for each in layers if each is not left_out))

"""Three-way merge of two administrators' changes: the second's on top of the first's. Pure."""

from dataclasses import dataclass

import msgspec

from caret.contracts.policy import TenantPolicy


@dataclass(frozen=True, slots=True)
class MergeResult:
    policy: TenantPolicy
    both_changed: list[str]  # fields that both changed to different values; the second's are used


def merge_policies(*, seen: TenantPolicy, wanted: TenantPolicy, held: TenantPolicy) -> MergeResult:
    """Apply the changes from `seen` to `wanted` to the policy in force, `held`."""
    mine, theirs = changed_fields(seen, wanted), changed_fields(seen, held)
    both = [name for name in mine if name in theirs and name in changed_fields(wanted, held)]
    return MergeResult(
        msgspec.structs.replace(held, **{name: getattr(wanted, name) for name in mine}), both
    )


def changed_fields(before: TenantPolicy, after: TenantPolicy) -> list[str]:
    names = before.__struct_fields__
    return [name for name in names if getattr(before, name) != getattr(after, name)]

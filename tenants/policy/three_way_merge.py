"""Three-way merge of policies, for two administrators who change the same version. Pure.

The first administrator's policy is in force. The second administrator's changes are applied to it.
"""

from dataclasses import dataclass

import msgspec

from caret.contracts.policy import TenantPolicy


@dataclass(frozen=True, slots=True)
class MergeResult:
    policy: TenantPolicy
    # Fields that both have changed to different values. The second administrator's value is used.
    conflicts: list[str]


def merge_policies(
    *, base: TenantPolicy, proposed: TenantPolicy, current: TenantPolicy
) -> MergeResult:
    """Apply the changes from `base` to `proposed` to the policy in force, `current`."""
    proposed_changes = list_changed_fields(base, proposed)
    current_changes = list_changed_fields(base, current)
    conflicts = [
        name
        for name in proposed_changes
        if name in current_changes and name in list_changed_fields(proposed, current)
    ]
    changes = {name: getattr(proposed, name) for name in proposed_changes}
    return MergeResult(msgspec.structs.replace(current, **changes), conflicts)


def list_changed_fields(before: TenantPolicy, after: TenantPolicy) -> list[str]:
    """Return the names of the fields that differ, in the order of the policy's fields."""
    names = before.__struct_fields__
    return [name for name in names if getattr(before, name) != getattr(after, name)]

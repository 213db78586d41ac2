"""Policy overrides of users, as a snapshot contains them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from caret.contracts.policy import PolicyOverride
from caret.foundation.ids import UserId


@dataclass(frozen=True, slots=True)
class OverrideAssignment:
    overrides: tuple[PolicyOverride, ...] = ()  # each override once
    # By user: the positions in `overrides` of the overrides that apply to the user.
    override_indexes: Mapping[UserId, tuple[int, ...]] = field(default_factory=dict)


def assign_overrides(
    overrides_by_user: Mapping[UserId, Iterable[PolicyOverride]],
) -> OverrideAssignment:
    """Assign overrides to users. Users without overrides are left out.

    `overrides_by_user` has each user's overrides in a fixed order. A team's override must be the
    same object for all users of the team, so that the result contains it only once.
    """
    index_by_id: dict[int, int] = {}
    overrides: list[PolicyOverride] = []
    override_indexes: dict[UserId, tuple[int, ...]] = {}
    for user_id, user_overrides in sorted(overrides_by_user.items()):
        ordered_overrides = list(user_overrides)
        for override in ordered_overrides:
            if id(override) not in index_by_id:
                index_by_id[id(override)] = len(overrides)
                overrides.append(override)
        if ordered_overrides:
            override_indexes[user_id] = tuple(
                index_by_id[id(override)] for override in ordered_overrides
            )
    return OverrideAssignment(tuple(overrides), override_indexes)


NO_OVERRIDES: Final = OverrideAssignment()

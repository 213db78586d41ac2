"""Policy overrides of users, as a snapshot contains them. Knows neither database nor Redis."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from caret.contracts.policy import PolicyOverride
from caret.foundation.ids import UserId


@dataclass(frozen=True, slots=True)
class OverrideAssignment:
    overrides: tuple[PolicyOverride, ...] = ()  # without duplicates
    # Each user's positions in `overrides`.
    override_indexes: Mapping[UserId, tuple[int, ...]] = field(default_factory=dict)


def assign_overrides(
    overrides_by_user: Mapping[UserId, Iterable[PolicyOverride]],
) -> OverrideAssignment:
    """Assign overrides to users. Users without overrides are left out.

    `overrides_by_user` has each user's overrides in a fixed order.
    """
    index_by_id: dict[int, int] = {}
    overrides: list[PolicyOverride] = []
    override_indexes: dict[UserId, tuple[int, ...]] = {}
    for user_id, user_overrides in sorted(overrides_by_user.items()):
        for override in (ordered_overrides := list(user_overrides)):
            if id(override) not in index_by_id:
                index_by_id[id(override)] = len(overrides)
                overrides.append(override)
        if ordered_overrides:
            override_indexes[user_id] = tuple(
                index_by_id[id(override)] for override in ordered_overrides
            )
    return OverrideAssignment(tuple(overrides), override_indexes)


NO_OVERRIDES: Final = OverrideAssignment()

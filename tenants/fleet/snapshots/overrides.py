"""Policy overrides of users, as a snapshot contains them. Knows neither database nor Redis."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from caret.contracts.policy import PolicyOverride
from caret.foundation.ids import UserId


@dataclass(frozen=True, slots=True)
class OverrideAssignment:
    overrides: tuple[PolicyOverride, ...] = ()  # without duplicates
    override_indexes: Mapping[UserId, tuple[int, ...]] = field(default_factory=dict)


def assign_overrides(said: Mapping[UserId, Iterable[PolicyOverride]]) -> OverrideAssignment:
    """Assign overrides to users. Users without any are left out.

    `said` has each user's overrides in a fixed order.
    """
    places: dict[int, int] = {}
    overrides: list[PolicyOverride] = []
    override_indexes: dict[UserId, tuple[int, ...]] = {}
    for user_id, own in sorted(said.items()):
        for override in (listed := list(own)):
            if id(override) not in places:
                places[id(override)] = len(overrides)
                overrides.append(override)
        if listed:
            override_indexes[user_id] = tuple(places[id(override)] for override in listed)
    return OverrideAssignment(tuple(overrides), override_indexes)


NO_OVERRIDES: Final = OverrideAssignment()

"""Policy overrides of users, as a snapshot contains them. Knows neither database nor Redis."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from caret.contracts.policy import PolicyOverride
from caret.foundation.ids import UserId


@dataclass(frozen=True, slots=True)
class OverrideAssignment:
    layers: tuple[PolicyOverride, ...] = ()  # without duplicates
    layers_of: Mapping[UserId, tuple[int, ...]] = field(default_factory=dict)


def assign_overrides(said: Mapping[UserId, Iterable[PolicyOverride]]) -> OverrideAssignment:
    """Assign overrides to users. Users without any are left out.

    `said` has each user's overrides in a fixed order.
    """
    places: dict[int, int] = {}
    layers: list[PolicyOverride] = []
    layers_of: dict[UserId, tuple[int, ...]] = {}
    for user_id, own in sorted(said.items()):
        for layer in (listed := list(own)):
            if id(layer) not in places:
                places[id(layer)] = len(layers)
                layers.append(layer)
        if listed:
            layers_of[user_id] = tuple(places[id(layer)] for layer in listed)
    return OverrideAssignment(tuple(layers), layers_of)


NO_LAYERS: Final = OverrideAssignment()

"""A fault, as all families have it."""

from dataclasses import dataclass
from typing import Protocol

from tests.chaos.world import World


class Scenario(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def hold_s(self) -> float:
        """From its beginning to its end."""

    @property
    def stays_down(self) -> frozenset[str]:
        """Parts that nobody starts again meanwhile."""

    def begin(self, world: World) -> None: ...

    def end(self, world: World) -> None:
        """Puts right what no supervisor would. Also called when the run is broken off."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What most have in common."""

    name: str
    hold_s: float
    stays_down: frozenset[str] = frozenset()

    def begin(self, world: World) -> None:
        raise NotImplementedError

    def end(self, world: World) -> None:
        pass

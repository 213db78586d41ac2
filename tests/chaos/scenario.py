"""A fault, as all families have it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.chaos.client_log import Note
from tests.chaos.environment import World


class Scenario(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def hold_s(self) -> float:
        """From its beginning to its end."""

    @property
    def holds_up_tokens(self) -> bool:
        """It delays the packets of first tokens themselves: that they are late says nothing."""

    def prepare(self, world: World) -> None:
        """What takes its time, and is no fault yet."""

    def begin(self, world: World) -> None: ...

    def end(self, world: World) -> None:
        """Puts right what no supervisor would. Also called when the run is broken off."""

    def told(self, notes: Sequence[Note]) -> dict[str, Any]:
        """Figures of its own, of what was asked from its beginning to the recovery."""


class Family(Protocol):
    """A module of faults of one kind."""

    def scenarios(self) -> Iterator[Scenario]: ...


@dataclass(slots=True)
class Fault:
    """What most have in common."""

    name: str
    hold_s: float
    holds_up_tokens: bool = False

    def prepare(self, world: World) -> None:
        pass

    def begin(self, world: World) -> None:
        raise NotImplementedError

    def end(self, world: World) -> None:
        pass

    def told(self, notes: Sequence[Note]) -> dict[str, Any]:
        return {}

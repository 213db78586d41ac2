"""The interface of faults, common to all families."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.chaos.client_log import Note
from tests.chaos.environment import World


class Scenario(Protocol):
    """A fault that a run injects."""

    @property
    def name(self) -> str: ...

    @property
    def hold_s(self) -> float:
        """Return the seconds from the fault's beginning to its end; 0: the fault ends at once."""

    @property
    def delays_tokens(self) -> bool:
        """Return True if the fault itself delays first tokens.

        The quiet tenant's first tokens may then be late.
        """

    def prepare(self, world: World) -> None:
        """Make the slow preparations, which are not yet a fault."""

    def begin(self, world: World) -> None: ...

    def end(self, world: World) -> None:
        """Undo the fault; the run itself restarts ended processes.

        Also called if the run is aborted.
        """

    def details(self, notes: Sequence[Note]) -> dict[str, Any]:
        """Return the fault's own results for requests from its beginning to the recovery."""


class Family(Protocol):
    """A module of faults of one kind."""

    def scenarios(self) -> Iterator[Scenario]: ...


@dataclass(slots=True)
class Fault:
    """The common parts of most faults."""

    name: str
    hold_s: float
    delays_tokens: bool = False

    def prepare(self, world: World) -> None:
        pass

    def begin(self, world: World) -> None:
        raise NotImplementedError

    def end(self, world: World) -> None:
        pass

    def details(self, notes: Sequence[Note]) -> dict[str, Any]:
        return {}

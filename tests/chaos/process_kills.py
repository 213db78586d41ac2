"""Processes that die or stop."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from tests.chaos.environment import World
from tests.chaos.scenario import Fault, Scenario

# One part of each kind: the second gateway and the second engine run the same program.
PARTS = ("gateway-1", "engine-1", "worker", "beat", "valkey", "postgres")
_STOPPED_S = 10.0


@dataclass(slots=True)
class ProcessKill(Fault):
    """SIGKILL for a process and all its children; the run restarts it after a second."""

    part: str = ""

    def begin(self, world: World) -> None:
        world.parts[self.part].kill()


@dataclass(slots=True)
class ProcessStop(Fault):
    """SIGSTOP: connections stay open, and nothing responds."""

    part: str = ""

    def begin(self, world: World) -> None:
        world.parts[self.part].signal(signal.SIGSTOP)

    def end(self, world: World) -> None:
        world.parts[self.part].signal(signal.SIGCONT)


def scenarios() -> Iterator[Scenario]:
    for part in PARTS:
        yield ProcessKill(f"kill-{part}", hold_s=0.0, part=part)
    for part in PARTS:
        yield ProcessStop(f"stop-{part}", hold_s=_STOPPED_S, part=part)

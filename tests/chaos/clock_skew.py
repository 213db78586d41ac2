"""Wall clocks of one host that jump by an hour, through a preloaded library (`clock.c`).

All of the host's processes see the jump at once and while they run, as after a wrong response of a
time server. The kernel's time stamps of files do not change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.chaos.environment import World
from tests.chaos.scenario import Fault, Scenario

_HOLD_S: Final = 15.0
_HOUR_S: Final = 3600.0


@dataclass(slots=True)
class ClockJump(Fault):
    """The clock of a host is wrong by `by_s` seconds; at the end it is right again."""

    host: str = ""
    by_s: float = 0.0

    def begin(self, world: World) -> None:
        world.clocks.set_offset(self.host, by_s=self.by_s)

    def end(self, world: World) -> None:
        world.clocks.set_offset(self.host, by_s=0.0)


def scenarios() -> Iterator[Scenario]:
    for host in ("gateway-1", "workers", "stores"):
        yield ClockJump(f"clock-ahead-{host}", hold_s=_HOLD_S, host=host, by_s=_HOUR_S)
        yield ClockJump(f"clock-behind-{host}", hold_s=_HOLD_S, host=host, by_s=-_HOUR_S)

"""Links between hosts that are cut or bad. One pair of each kind: the other pairs communicate
alike."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.chaos.environment import World
from tests.chaos.netem import CUT, Quality, bad_wire
from tests.chaos.scenario import Fault, Scenario

PAIRS = (
    ("clients", "gateway-1"),
    ("gateway-1", "engine-1"),
    ("gateway-1", "stores"),
    ("workers", "stores"),
)
_OF_TOKENS = PAIRS[:2]
_CUT_S = 30.0
_BAD_S = 20.0
_BAD = Quality(delay_ms=100.0, loss=0.05)  # 200 ms round trip


@dataclass(slots=True)
class BadWire(Fault):
    pair: tuple[str, str] = ("", "")
    quality: Quality = CUT
    _open: ExitStack = field(default_factory=ExitStack)

    def begin(self, world: World) -> None:
        first_host, second_host = (world.hosts[name] for name in self.pair)
        wire = bad_wire(first_host, second_host, self.quality, environment=world.home.environment)
        self._open.enter_context(wire)

    def end(self, world: World) -> None:
        self._open.close()


def scenarios() -> Iterator[Scenario]:
    for pair in PAIRS:
        yield BadWire(f"cut-{pair[0]}-{pair[1]}", hold_s=_CUT_S, pair=pair)
    for pair in PAIRS:
        yield BadWire(
            f"bad-wire-{pair[0]}-{pair[1]}",
            hold_s=_BAD_S,
            holds_up_tokens=pair in _OF_TOKENS,
            pair=pair,
            quality=_BAD,
        )

"""Links between hosts that are cut or bad.

`PAIRS` has each kind of link once. For example, one pair of a gateway and an engine is enough,
because each gateway is connected to each engine in the same way.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.chaos.environment import World
from tests.chaos.netem import CUT, Quality, bad_link
from tests.chaos.scenario import Fault, Scenario

PAIRS = (
    ("clients", "gateway-1"),
    ("gateway-1", "engine-1"),
    ("gateway-1", "stores"),
    ("workers", "stores"),
)
_PAIRS_ON_TOKEN_PATH = PAIRS[:2]  # from the clients to the engine: tokens take these links
_CUT_S = 30.0
_BAD_S = 20.0
_BAD = Quality(delay_ms=100.0, loss=0.05)  # 200 ms round trip


@dataclass(slots=True)
class BadLink(Fault):
    """The link between two hosts loses or delays packets; at the end it is good again."""

    pair: tuple[str, str] = ("", "")
    quality: Quality = CUT
    _link: ExitStack = field(default_factory=ExitStack)

    def begin(self, world: World) -> None:
        first_host, second_host = (world.hosts[name] for name in self.pair)
        link = bad_link(first_host, second_host, self.quality, environment=world.home.environment)
        self._link.enter_context(link)

    def end(self, world: World) -> None:
        self._link.close()


def scenarios() -> Iterator[Scenario]:
    for pair in PAIRS:
        yield BadLink(f"cut-{pair[0]}-{pair[1]}", hold_s=_CUT_S, pair=pair)
    for pair in PAIRS:
        yield BadLink(
            f"bad-wire-{pair[0]}-{pair[1]}",
            hold_s=_BAD_S,
            delays_tokens=pair in _PAIRS_ON_TOKEN_PATH,
            pair=pair,
            quality=_BAD,
        )

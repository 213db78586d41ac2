"""One of two engines responds slowly, wrongly or not at all, and reports itself as healthy."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.chaos.environment import World
from tests.chaos.faulty_engine import Behaviour
from tests.chaos.scenario import Fault, Scenario

_HOLD_S = 30.0  # long enough that more than one or two slow requests determine the p99
_ENGINE = "engine-1"


@dataclass(slots=True)
class BehaviourFault(Fault):
    """The engine changes its behaviour; at the end it is healthy again."""

    behaviour: Behaviour = Behaviour.HEALTHY

    def begin(self, world: World) -> None:
        world.behaviour_file(_ENGINE).write_text(self.behaviour)

    def end(self, world: World) -> None:
        world.behaviour_file(_ENGINE).write_text(Behaviour.HEALTHY)


def scenarios() -> Iterator[Scenario]:
    for behaviour in Behaviour:
        if behaviour is not Behaviour.HEALTHY:
            yield BehaviourFault(f"engine-{behaviour}", hold_s=_HOLD_S, behaviour=behaviour)

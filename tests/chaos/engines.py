"""One of two engines responds slowly, wrongly or not at all, and reports itself as healthy."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.chaos.environment import World
from tests.chaos.faulty_engine import Mood
from tests.chaos.scenario import Fault, Scenario

_HOLD_S = 30.0  # as long as a network cut: with fewer requests, the p99 is one of the two worst
_ENGINE = "engine-1"


@dataclass(slots=True)
class Moody(Fault):
    mood: Mood = Mood.WELL

    def begin(self, world: World) -> None:
        world.mood_file(_ENGINE).write_text(self.mood)

    def end(self, world: World) -> None:
        world.mood_file(_ENGINE).write_text(Mood.WELL)


def scenarios() -> Iterator[Scenario]:
    for mood in Mood:
        if mood is not Mood.WELL:
            yield Moody(f"engine-{mood}", hold_s=_HOLD_S, mood=mood)

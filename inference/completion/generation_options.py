"""The client's options for generation: sampling and time limits."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Sampling:
    """Options for the choice of each token. By default, the engine takes the most likely token."""

    temperature: float = 0.0  # 0 to 2; 0: always the most likely token
    # Choose from the most likely tokens whose probabilities add up to this. Above 0, at most 1.
    top_p: float = 1.0
    seed: int | None = None  # None: a different text each time, unless the temperature is 0

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Limits after which a completion ends with the text generated so far. None: no limit."""

    first_token_ms: int | None = None  # from the call of the engine to the first token
    generation_ms: int | None = None  # from the first token to the last one


GREEDY: Final = Sampling()
NO_TIME_LIMITS: Final = TimeLimits()

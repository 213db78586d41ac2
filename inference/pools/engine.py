"""The port to an engine, with its requests and chunks."""

import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from caret.foundation.ids import CacheSalt
from inference.completion.generation_options import (
    GREEDY,
    NO_TIME_LIMITS,
    Sampling,
    TimeLimits,
)
from inference.pools.pool_config import Pool, Replica

# No user waits longer for a suggestion. An engine that takes longer hangs or is overloaded.
MAX_COMPLETION_S: Final = 30.0


class EngineStop(StrEnum):
    """The reason why an engine's text ended."""

    STOP = "stop"  # a stop token, or a stop text other than a line break
    LINE = "line"  # the stop text "\n": the completion ends before a line break
    LENGTH = "length"
    # The last possible replica failed after the completion's text had begun (generate.py).
    DISCONNECTED = "disconnected"


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """Everything that an engine needs to start a completion."""

    pool: Pool
    replica: Replica
    token_ids: list[int]
    stop_token_ids: list[int]
    stop: tuple[str, ...]  # texts that end the completion; at most four
    max_tokens: int
    salt: CacheSalt  # separates the namespaces of the prefix cache
    priority: int  # lower numbers leave the engine's queue first
    num_in_flight_at_replica: int = 0  # this gateway's other requests there, without warm-ups
    first_token_timeout_s: float = math.inf  # the replica is late if its first token takes longer
    is_preemptible: bool = False  # cancelled when a request that is not preemptible is sent there
    fallback_replicas: tuple[Replica, ...] = ()  # tried in turn if the replica fails
    max_duration_s: float = MAX_COMPLETION_S  # of all attempts together
    sampling: Sampling = GREEDY
    time_limits: TimeLimits = NO_TIME_LIMITS
    # The completion begins with this text (token healing). The engine should generate it.
    required_prefix: str = ""

    @property
    def model(self) -> str:
        return self.pool.model

    @property
    def replica_name(self) -> str:
        return self.replica.name

    def for_fallbacks(self) -> tuple["EngineRequest", ...]:
        """Return the same request for each fallback replica."""
        return tuple(
            replace(self, replica=fallback, fallback_replicas=())
            for fallback in self.fallback_replicas
        )

    def without_line_stop(self) -> "EngineRequest":
        return replace(self, stop=tuple(text for text in self.stop if text != "\n"))

    def resume_after(self, generated_token_ids: list[int]) -> "EngineRequest":
        """Return the request for the rest of a completion that has begun with these tokens.

        There must be fewer of them than `max_tokens`. The rest has no required prefix: the filter
        checks whether both parts together begin with it.
        """
        if not generated_token_ids:
            return self
        return replace(
            self,
            token_ids=[*self.token_ids, *generated_token_ids],
            max_tokens=self.max_tokens - len(generated_token_ids),
            required_prefix="",
        )


@dataclass(frozen=True, slots=True)
class EngineChunk:
    """The text that the engine generated since the previous chunk."""

    text: str  # may be empty
    generated_tokens: int  # of the whole completion so far
    stop: EngineStop | None  # None: more may follow
    cached_tokens: int | None = None  # of the prompt; None: not the last chunk, or not reported


class Engine(Protocol):
    def complete(
        self, request: EngineRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[EngineChunk]]:
        """Stream a completion. Leaving the context stops the engine at once.

        The codes of EngineError are `engine_unavailable` (no response began), `engine_disconnected`
        (the stream broke off), `engine_refused`, `engine_invalid_response` and `engine_busy`.
        Raises EngineError, PromptRefused.
        """

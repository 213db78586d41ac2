"""The port to an engine, and the words it speaks."""

import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from caret.foundation.ids import CacheSalt
from inference.pools.pool_config import Pool, Replica


class EngineStop(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    DISCONNECTED = "lost"  # the last replica that could be asked, in mid-stream (generate.py)


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """All that an engine needs to begin."""

    pool: Pool
    replica: Replica
    token_ids: list[int]
    stop_token_ids: list[int]
    stop: tuple[str, ...]  # at most four
    max_tokens: int
    salt: CacheSalt
    priority: int  # lower numbers leave the engine's queue first
    num_in_flight_at_replica: int = (
        0  # requests of this gateway under way there, this one not counted
    )
    first_token_timeout_s: float = math.inf  # without a first token the replica is late
    is_preemptible: bool = False  # to any other request at that replica: it is cancelled
    fallback_replicas: tuple[Replica, ...] = ()  # to be asked in turn when that one fails

    @property
    def replica_name(self) -> str:
        return self.replica.name

    def for_fallbacks(self) -> tuple["EngineRequest", ...]:
        return tuple(
            replace(self, replica=other, fallback_replicas=()) for other in self.fallback_replicas
        )

    def resume_after(self, said_token_ids: list[int]) -> "EngineRequest":
        """The rest of a completion that has begun with these; fewer than `max_tokens`."""
        if not said_token_ids:
            return self
        return replace(
            self,
            token_ids=[*self.token_ids, *said_token_ids],
            max_tokens=self.max_tokens - len(said_token_ids),
        )


@dataclass(frozen=True, slots=True)
class EngineChunk:
    """What the engine has generated since the chunk before."""

    text: str  # may be empty
    generated_tokens: int  # of the whole completion so far
    stop: EngineStop | None  # None: more may come
    cached_tokens: int | None = None  # of the prompt; only once the engine has ended


class Engine(Protocol):
    def complete(
        self, request: EngineRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[EngineChunk]]:
        """Stream a completion. Leaving the context stops the engine at once.

        Raises PromptRefused, and EngineError: `engine_unavailable` (nothing was begun),
        `engine_disconnected` (the stream broke off), `engine_refused`, `engine_invalid_response`,
        `engine_busy`.
        """

"""generate: asks the engine, and keeps the account of what it did.

A replica that fails is no loss yet: the next one is asked, once. What the first has written is not
taken back, so the next one goes on behind it, as if it had written that, too: tokens are chosen
greedily, so it is what it would have written, but for the arithmetic of its batches.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Final, Protocol

import structlog

from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import MAX_SEND_S
from inference.errors import BadRequest, CompletionError, EngineError
from inference.pools.engine import Engine, EngineChunk, EngineRequest, EngineStop
from inference.pools.health.replica_states import ReplicaAttempt, ReplicaStates

# Nobody waits for grey text as long; what is left then is a hung engine or a trickle.
MAX_COMPLETION_S: Final = 30.0
# Each is the replica's fault: another one would have answered.
_LOSSES: Final = ("engine_unavailable", "engine_disconnected", "engine_invalid_response")
# Others of the pool may answer these, too; all else would fail there again.
_RETRYABLE: Final = (*_LOSSES, "engine_timeout", "engine_busy")
_EVENTS: Final = {
    None: "completion.resumed",
    EngineStop.DISCONNECTED: "completion.cut_off",
    EngineStop.LENGTH: "completion.end_lost",  # nobody had to go on
}
log = structlog.get_logger(__name__)


class TokenEncoder(Protocol):
    def encode(self, text: str) -> list[int]:
        """As the pool's model has it."""


@asynccontextmanager
async def generate(
    engine: Engine,
    asked: EngineRequest,
    replicas: ReplicaStates,
    account: RequestTrace,
    tokens: TokenEncoder,
) -> AsyncIterator[AsyncIterator[EngineChunk]]:
    """What it yields raises EngineError, unless there was text before and nobody is left to go on:
    then it ends with LOST. Leaving the context stops the engine at once, whatever the reason. One
    deadline holds for all attempts; a client that reads too slowly gets BadRequest for it."""
    account.mark_engine_called()
    try:
        async with (
            asyncio.timeout(MAX_COMPLETION_S),
            aclosing(_chunks(engine, asked, replicas, account, tokens)) as chunks,
        ):
            yield chunks
    except TimeoutError:
        raise _find_overdue(account) from None


def _find_overdue(account: RequestTrace) -> CompletionError:
    if account.client_wait_s > MAX_SEND_S:
        return BadRequest("too_slow", "The answer was read too slowly.", http_status=408)
    return EngineError("deadline", "The completion took too long.", http_status=504)


async def _chunks(
    engine: Engine,
    asked: EngineRequest,
    replicas: ReplicaStates,
    account: RequestTrace,
    tokens: TokenEncoder,
) -> AsyncGenerator[EngineChunk, None]:
    attempts = [asked, *asked.for_fallbacks()]
    texts: list[str] = []
    said: list[int] = []  # the tokens of `texts`
    stop: EngineStop | None = None
    while stop is None:
        request = attempts.pop(0).resume_after(said)
        try:
            with _attempt(request, replicas, account) as attempt:
                async with engine.complete(request) as chunks:
                    async for chunk in chunks:
                        _hear(chunk, request, attempt, account, num_said=len(said))
                        texts.append(chunk.text)
                        stop = chunk.stop or stop
                        yield chunk
            return
        except EngineError as error:
            if stop is not None:
                return  # what was lost is not missed
            # One that was drained since it was chosen gets nothing new.
            attempts = [
                each
                for each in attempts
                if error.code in _RETRYABLE and not replicas.is_drained(each.replica)
            ]
            if not (attempts or any(texts)):
                raise
            # Not as many as the engine counted: what it held back, as a stop string may begin with
            # it, is generated again.
            said = tokens.encode("".join(texts))
            stop = _stop(num_left=asked.max_tokens - len(said), has_next=bool(attempts))
            _log(error, request, account, stop)
        if stop is None:
            account.mark_rerouted(attempts[0])
    yield EngineChunk("", account.generated_tokens, stop)


def _of_prompt(cached_tokens: int | None, request: EngineRequest, num_said: int) -> int | None:
    """Without what was said, which may be cached where another goes on."""
    if cached_tokens is None:
        return None
    return min(cached_tokens, len(request.token_ids) - num_said)


def _stop(*, num_left: int, has_next: bool) -> EngineStop | None:
    """Of what was begun and lost; None: it goes on."""
    if num_left <= 0:
        return EngineStop.LENGTH  # but for its end it was whole
    return None if has_next else EngineStop.DISCONNECTED


def _log(
    error: EngineError, lost: EngineRequest, account: RequestTrace, stop: EngineStop | None
) -> None:
    if account.generated_tokens:
        log.warning(
            _EVENTS[stop],
            request_id=account.arrival.request_id,
            lost=lost.replica_name,
            error=error.code,
            generated_tokens=account.generated_tokens,
        )


@contextmanager
def _attempt(
    request: EngineRequest, replicas: ReplicaStates, account: RequestTrace
) -> Iterator[ReplicaAttempt]:
    with replicas.attempt(
        request.replica,
        is_preemptible=request.is_preemptible,
        first_token_timeout_s=request.first_token_timeout_s,
        fallback=next(iter(request.fallback_replicas), None),
    ) as attempt:
        try:
            yield attempt
        except EngineError as error:
            if error.code in _LOSSES:
                attempt.mark_failed()
            raise
        finally:
            account.mark_engine_closed()


def _hear(
    chunk: EngineChunk,
    request: EngineRequest,
    attempt: ReplicaAttempt,
    account: RequestTrace,
    *,
    num_said: int,
) -> None:
    account.record_chunk(
        generated_tokens=num_said + chunk.generated_tokens,
        cached_tokens=_of_prompt(chunk.cached_tokens, request, num_said),
    )
    # Not every engine counts as it goes.
    if chunk.text or chunk.generated_tokens or chunk.stop:
        attempt.mark_succeeded()

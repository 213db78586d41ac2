"""generate: asks the engine, and keeps the account of what it did.

A replica that fails before its first token is no loss yet: the next one is asked, once.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Final

from inference.completion.account import Account
from inference.errors import EngineFailed
from inference.pools.engine import Chunk, Engine, EngineRequest
from inference.pools.replicas import Attempt, Replicas

# Nobody waits for grey text as long; what is left then is a hung engine or a trickle.
MAX_COMPLETION_S: Final = 30.0
# Each is the replica's fault: another one would have answered.
_LOSSES: Final = ("engine_unavailable", "engine_lost", "engine_garbled")
# The others are the request's fault, and would be again.
_RETRYABLE: Final = (*_LOSSES, "engine_busy")


@asynccontextmanager
async def generate(
    engine: Engine, asked: EngineRequest, replicas: Replicas, account: Account
) -> AsyncIterator[AsyncIterator[Chunk]]:
    """What it yields raises EngineFailed; leaving the context stops the engine at once, whatever
    the reason. One deadline holds for all attempts."""
    account.asks()
    try:
        async with (
            asyncio.timeout(MAX_COMPLETION_S),
            aclosing(_chunks(engine, asked, replicas, account)) as chunks,
        ):
            yield chunks
    except TimeoutError:
        raise EngineFailed("deadline", "The completion took too long.", http_status=504) from None


async def _chunks(
    engine: Engine, asked: EngineRequest, replicas: Replicas, account: Account
) -> AsyncGenerator[Chunk, None]:
    attempts = [asked, *asked.elsewhere()]
    while attempts:
        request = attempts.pop(0)
        try:
            with _attempt(request, replicas, account) as attempt:
                async with engine.complete(request) as chunks:
                    async for chunk in chunks:
                        _hear(chunk, account, attempt)
                        yield chunk
            return
        except EngineFailed as error:
            # One that was drained since it was chosen gets nothing new.
            attempts = [each for each in attempts if not replicas.is_drained(each.replica)]
            if not attempts or account.has_heard or error.code not in _RETRYABLE:
                raise
        account.moves_to(attempts[0])


@contextmanager
def _attempt(request: EngineRequest, replicas: Replicas, account: Account) -> Iterator[Attempt]:
    with replicas.attempt(
        request.replica, gives_way=request.gives_way, late_after_s=request.late_after_s
    ) as attempt:
        try:
            yield attempt
        except EngineFailed as error:
            if error.code in _LOSSES:
                attempt.fails()
            raise
        finally:
            account.leaves_engine()


def _hear(chunk: Chunk, account: Account, attempt: Attempt) -> None:
    account.heard(generated_tokens=chunk.generated_tokens, cached_tokens=chunk.cached_tokens)
    if chunk.generated_tokens or chunk.stop:
        attempt.succeeds()

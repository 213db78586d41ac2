"""generate: asks the engine, and keeps the account of what it did."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

from inference.completion.account import Account
from inference.errors import EngineFailed
from inference.pools.engine import Chunk, Engine, EngineRequest
from inference.pools.health import Health

# Nobody waits for grey text as long; what is left then is a hung engine or a trickle.
MAX_COMPLETION_S: Final = 30.0


@asynccontextmanager
async def generate(
    engine: Engine, request: EngineRequest, health: Health, account: Account
) -> AsyncIterator[AsyncIterator[Chunk]]:
    """Raises EngineFailed; leaving the context stops the engine at once, whatever the reason."""
    account.asks()
    try:
        async with (
            asyncio.timeout(MAX_COMPLETION_S),
            engine.complete(request) as chunks,
            aclosing(_accounted(chunks, account)) as accounted,
        ):
            yield accounted
    except TimeoutError:
        raise EngineFailed("deadline", "The completion took too long.", http_status=504) from None
    except EngineFailed as error:
        if error.code in ("engine_unavailable", "engine_lost"):
            health.failed(request.replica)
        raise


async def _accounted(chunks: AsyncIterator[Chunk], account: Account) -> AsyncGenerator[Chunk, None]:
    async for chunk in chunks:
        account.heard(generated_tokens=chunk.generated_tokens, cached_tokens=chunk.cached_tokens)
        yield chunk

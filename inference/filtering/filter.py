"""filter: of the engine's stream goes on what is worth showing; what is decided ends it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from caret.contracts.usage import Finish
from inference.completion.account import Account
from inference.completion.request import Admitted
from inference.context.prompt import Prompt
from inference.filtering.cut import Cutter
from inference.filtering.surroundings import surroundings_of
from inference.pools.engine import Chunk, EngineStop


@asynccontextmanager
async def filter(
    chunks: AsyncIterator[Chunk],
    admitted: Admitted,
    prompt: Prompt,
    account: Account,
) -> AsyncIterator[AsyncIterator[str]]:
    """Yields the texts to show, none of them empty. Raw prompts and chats pass as they are.

    The account gets the ending: `stop` or `length` by the engine, `stop` where the filter cut,
    `filtered` when the engine wrote something and nothing of it was worth showing.
    """
    request = admitted.request
    texts = (
        _unfiltered(chunks, account)
        if request.is_raw or request.messages
        else _cut(
            chunks, Cutter(surroundings_of(request, is_single_line=prompt.is_single_line)), account
        )
    )
    async with aclosing(texts):
        yield texts


async def _unfiltered(chunks: AsyncIterator[Chunk], account: Account) -> AsyncGenerator[str, None]:
    stop: EngineStop | None = None
    async for chunk in chunks:
        stop = chunk.stop or stop
        if chunk.text:
            yield chunk.text
    account.finish(_finish(stop))


async def _cut(
    chunks: AsyncIterator[Chunk], cutter: Cutter, account: Account
) -> AsyncGenerator[str, None]:
    stop: EngineStop | None = None
    has_text = has_shown = False
    async for chunk in chunks:
        stop = chunk.stop or stop
        has_text = has_text or bool(chunk.text)
        if shown := cutter.feed(chunk.text):
            has_shown = True
            yield shown
        if cutter.has_ended and stop is None:
            break  # leaving stops the engine
    if shown := cutter.finish():
        has_shown = True
        yield shown
    is_withheld = has_text and not has_shown
    account.finish(Finish.FILTERED if is_withheld else _finish(stop))


def _finish(stop: EngineStop | None) -> Finish:
    return Finish.LENGTH if stop is EngineStop.LENGTH else Finish.STOP

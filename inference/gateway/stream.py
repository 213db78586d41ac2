"""stream: what the filter lets through goes to the client, and so does the end, whatever it is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ClientDisconnected, ResponseWriter
from inference.errors import CompletionDropped, CompletionError

Send = Callable[[str], Awaitable[None]]


@asynccontextmanager
async def stream(client: ResponseWriter, account: RequestTrace) -> AsyncIterator[Send]:
    """Yields the function that sends text; on leaving, tells the client how it ended.

    Errors of the completion end here. Cancellation is told to the client only when it asked for it
    (the reason travels as the message of `Task.cancel`), and goes on.
    """
    try:
        yield _sender(client, account)
    except CompletionError as error:
        account.fail(error)
        await _tell(client.write_error(error, account))
    except CompletionDropped as dropped:
        account.finish(dropped.finish)
        await _tell(client.write_done(account))
    except ClientDisconnected:
        account.finish(FinishReason.CANCELLED)
    except asyncio.CancelledError as cancelled:
        account.finish(_reason(cancelled))
        if cancelled.args:
            await _tell(client.write_done(account))
        raise
    except Exception:
        await _tell(
            client.write_error(CompletionError("internal", "Something went wrong."), account)
        )
        raise
    else:
        await _tell(client.write_done(account))


def _sender(client: ResponseWriter, account: RequestTrace) -> Send:
    async def send(text: str) -> None:
        began_s = account.clock.monotonic_s()
        try:
            await client.write_delta(text)
        finally:
            account.client_wait_s += account.clock.monotonic_s() - began_s
        account.record_sent_text(text, at_s=began_s)

    return send


async def _tell(telling: Awaitable[None]) -> None:
    # Who has left is told nothing; the record of the completion is what remains.
    with suppress(ClientDisconnected):
        await telling


def _reason(cancelled: asyncio.CancelledError) -> FinishReason:
    told = cancelled.args[0] if cancelled.args else None
    return FinishReason.SUPERSEDED if told == FinishReason.SUPERSEDED else FinishReason.CANCELLED

"""The stream stage: send the filtered text to the client, and then how the completion ended."""

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
    """Yield the function that sends text. On exit, tell the client how the completion ended.

    Errors of the completion are handled here. A cancellation is re-raised. The client is told about
    it only if the message of `Task.cancel` names a reason.
    """
    try:
        yield _build_sender(client, account)
    except CompletionError as error:
        account.fail(error)
        await _send_ignoring_disconnect(client.write_error(error, account))
    except CompletionDropped as dropped:
        account.finish(dropped.finish_reason)
        await _send_ignoring_disconnect(client.write_done(account))
    except ClientDisconnected:
        account.finish(FinishReason.CANCELLED)
    except asyncio.CancelledError as cancelled:
        account.finish(_reason_of_cancellation(cancelled))
        if cancelled.args:
            await _send_ignoring_disconnect(client.write_done(account))
        raise
    except Exception:
        await _send_ignoring_disconnect(
            client.write_error(CompletionError("internal_error", "Something went wrong."), account)
        )
        raise
    else:
        await _send_ignoring_disconnect(client.write_done(account))


def _build_sender(client: ResponseWriter, account: RequestTrace) -> Send:
    async def send(text: str) -> None:
        began_s = account.clock.monotonic_s()
        try:
            await client.write_delta(text)
        finally:
            account.client_wait_s += account.clock.monotonic_s() - began_s
        account.record_sent_text(text, at_s=began_s)

    return send


async def _send_ignoring_disconnect(telling: Awaitable[None]) -> None:
    # A disconnected client cannot be told. The usage record is still written.
    with suppress(ClientDisconnected):
        await telling


def _reason_of_cancellation(cancelled: asyncio.CancelledError) -> FinishReason:
    reason = cancelled.args[0] if cancelled.args else None
    return FinishReason.SUPERSEDED if reason == FinishReason.SUPERSEDED else FinishReason.CANCELLED

"""The stream stage: send the filtered text to the client, and then one final message."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ClientDisconnected, ResponseWriter
from inference.errors import CompletionDropped, CompletionError

Send = Callable[[str], Awaitable[None]]


@asynccontextmanager
async def stream(client: ResponseWriter, trace: RequestTrace) -> AsyncIterator[Send]:
    """Yield the function that sends text. On exit, tell the client how the completion ended.

    Errors of the completion are handled here. Defects and cancellations are re-raised. The client
    is told about a defect (`internal_error`), and about a cancellation if the message of
    `Task.cancel` is a FinishReason or an error.
    """
    try:
        yield _build_sender(client, trace)
    except CompletionError as error:
        trace.fail(error)
        await _send_ignoring_disconnect(client.write_error(error, trace))
    except CompletionDropped as dropped:
        trace.finish(dropped.finish_reason)
        await _send_ignoring_disconnect(client.write_done(trace))
    except ClientDisconnected:
        trace.finish(FinishReason.CANCELLED)
    except asyncio.CancelledError as cancelled:
        trace.finish(_reason_of_cancellation(cancelled))
        if cancelled.args:
            await _send_ignoring_disconnect(_write_end(client, trace, cancelled.args[0]))
        raise
    except Exception:
        # `record` finishes the trace with internal_error.
        await _send_ignoring_disconnect(
            client.write_error(CompletionError("internal_error", "Something went wrong."), trace)
        )
        raise
    else:
        await _send_ignoring_disconnect(client.write_done(trace))


def _build_sender(client: ResponseWriter, trace: RequestTrace) -> Send:
    async def send(text: str) -> None:
        began_s = trace.clock.monotonic_s()
        try:
            await client.write_delta(text, trace)
        finally:
            trace.client_wait_s += trace.clock.monotonic_s() - began_s
        trace.record_sent_text(text, at_s=began_s)

    return send


async def _send_ignoring_disconnect(sending: Awaitable[None]) -> None:
    # The usage record is written even if the client has disconnected.
    with suppress(ClientDisconnected):
        await sending


def _write_end(client: ResponseWriter, trace: RequestTrace, reason: object) -> Awaitable[None]:
    """Tell the client the reason of a cancellation: an error, or the finish reason in `trace`."""
    if isinstance(reason, CompletionError):
        return client.write_error(reason, trace)
    return client.write_done(trace)


def _reason_of_cancellation(cancelled: asyncio.CancelledError) -> FinishReason:
    reason = cancelled.args[0] if cancelled.args else None
    return FinishReason.SUPERSEDED if reason == FinishReason.SUPERSEDED else FinishReason.CANCELLED

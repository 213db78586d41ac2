"""The stage `stream`: the client gets the text and exactly one end, for every finish reason."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped, CompletionError, EngineError, TooManyRequests
from inference.gateway.stream import stream
from tests.fakes.client import FakeClient
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_trace

Body = Callable[[], Awaitable[None]]


async def _do_nothing() -> None:
    return


def _raising(error: BaseException) -> Body:
    async def body() -> None:
        raise error

    return body


async def _stream(
    client: FakeClient, trace: RequestTrace, *texts: str, then: Body = _do_nothing
) -> None:
    async with stream(client, trace) as send:
        for text in texts:
            await send(text)
        await then()


async def _cancel_stream(
    client: FakeClient, trace: RequestTrace, *message: str
) -> asyncio.Task[None]:
    """Cancel a stream that is waiting for its engine, and return its task.

    `message` is the message of `Task.cancel`. Without a message, the server has cancelled the task
    because the connection is closed.
    """
    waiting = asyncio.Event()

    async def wait() -> None:
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(_stream(client, trace, "a", then=wait))
    await waiting.wait()
    task.cancel(*message)
    await asyncio.gather(task, return_exceptions=True)
    return task


async def test_text_is_sent_and_followed_by_done() -> None:
    client = FakeClient()

    await _stream(client, make_trace(), "a", "b")

    assert (client.texts, client.ends) == (["a", "b"], ["done"])


async def test_the_first_token_time_excludes_the_wait_for_a_slow_reader() -> None:
    clock = FakeClock()
    trace, client = make_trace(clock), FakeClient(on_delta=lambda: clock.pass_s(2.0))

    await _stream(client, trace, "a", "b")

    assert trace.first_token_ms == 0.0
    assert trace.client_wait_s == 4.0


async def test_the_trace_counts_sent_characters() -> None:
    trace = make_trace()

    await _stream(FakeClient(), trace, "ab", "c")

    assert trace.num_sent_chars == 3
    assert trace.first_sent_s is not None


@pytest.mark.parametrize("num_texts", [0, 1])
async def test_an_error_is_reported_before_and_after_the_first_text(num_texts: int) -> None:
    client, trace = FakeClient(), make_trace()
    error = EngineError("engine_disconnected", "It ended.")

    await _stream(client, trace, *["a"] * num_texts, then=_raising(error))

    assert (client.ends, client.messages) == (["engine_disconnected"], ["It ended."])
    assert (trace.finish_reason, trace.error_code) == (
        FinishReason.ERROR,
        "engine_disconnected",
    )


async def test_an_internal_error_is_reported_without_its_message_and_raised() -> None:
    client = FakeClient()

    with pytest.raises(ValueError, match="customer"):
        await _stream(client, make_trace(), then=_raising(ValueError("customer's code")))

    assert client.ends == ["internal_error"]
    assert "customer" not in client.messages[0]


@pytest.mark.parametrize("finish_reason", [FinishReason.CANCELLED, FinishReason.SUPERSEDED])
async def test_a_cancelled_completion_ends_with_its_reason(
    finish_reason: FinishReason,
) -> None:
    client, trace = FakeClient(), make_trace()

    task = await _cancel_stream(client, trace, finish_reason.value)

    assert (client.ends, trace.finish_reason) == (["done"], finish_reason)
    assert task.cancelled()


async def test_nothing_is_sent_to_a_closed_connection() -> None:
    client, trace = FakeClient(), make_trace()

    task = await _cancel_stream(client, trace)

    assert (client.ends, trace.finish_reason) == ([], FinishReason.CANCELLED)
    assert task.cancelled()


async def test_an_unknown_cancellation_message_gives_the_finish_reason_cancelled() -> None:
    client, trace = FakeClient(), make_trace()

    task = await _cancel_stream(client, trace, "whatever")

    assert trace.finish_reason is FinishReason.CANCELLED
    assert task.cancelled()


async def test_a_client_that_leaves_cancels_its_completion() -> None:
    client, trace = FakeClient(leaves_after=1), make_trace()

    await _stream(client, trace, "a", "b", "c")

    assert (client.texts, trace.finish_reason) == (["a"], FinishReason.CANCELLED)


async def test_text_that_never_arrived_is_not_counted() -> None:
    trace = make_trace()

    await _stream(FakeClient(leaves_after=0), trace, "abc")

    assert (trace.num_sent_chars, trace.first_sent_s) == (0, None)


async def test_a_client_that_has_left_does_not_change_the_finish_reason() -> None:
    trace = make_trace()
    trace.finish(FinishReason.STOP)

    await _stream(FakeClient(leaves_after=0), trace)

    assert trace.finish_reason is FinishReason.STOP


@pytest.mark.parametrize(
    "error", [EngineError("engine_disconnected", ""), TooManyRequests("gateway_at_capacity", "")]
)
async def test_an_error_is_recorded_even_if_the_client_has_left(error: CompletionError) -> None:
    trace = make_trace()

    await _stream(FakeClient(leaves_after=0), trace, then=_raising(error))

    assert (trace.finish_reason, trace.error_code) == (FinishReason.ERROR, error.code)


async def test_an_internal_error_is_raised_even_if_the_client_has_left() -> None:
    with pytest.raises(ValueError, match="planted"):
        await _stream(
            FakeClient(leaves_after=0), make_trace(), then=_raising(ValueError("planted"))
        )


async def test_a_cancelled_completion_ends_even_if_the_client_has_left() -> None:
    client, trace = FakeClient(leaves_after=1), make_trace()

    task = await _cancel_stream(client, trace, FinishReason.SUPERSEDED.value)

    assert (client.ends, trace.finish_reason) == ([], FinishReason.SUPERSEDED)
    assert task.cancelled()


@pytest.mark.parametrize("finish_reason", [FinishReason.SHED, FinishReason.SUPERSEDED])
async def test_a_dropped_completion_ends_with_done_and_without_text(
    finish_reason: FinishReason,
) -> None:
    client, trace = FakeClient(), make_trace()

    await _stream(client, trace, then=_raising(CompletionDropped(finish_reason)))

    assert (client.texts, client.ends, trace.finish_reason) == ([], ["done"], finish_reason)

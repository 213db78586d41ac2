"""stream: the client gets the text and exactly one end, whatever it is."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped, CompletionError, EngineError, TooManyRequests
from inference.gateway.stream import stream
from tests.fakes.client import FakeClient
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_account

Body = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    return


def _raising(error: BaseException) -> Body:
    async def body() -> None:
        raise error

    return body


async def _stream(
    client: FakeClient, account: RequestTrace, *texts: str, then: Body = _nothing
) -> None:
    async with stream(client, account) as send:
        for text in texts:
            await send(text)
        await then()


async def _cancelled(
    client: FakeClient, account: RequestTrace, *message: str
) -> asyncio.Task[None]:
    """Return a cancelled stream that was waiting for its engine."""
    waiting = asyncio.Event()

    async def wait() -> None:
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(_stream(client, account, "a", then=wait))
    await waiting.wait()
    task.cancel(*message)
    await asyncio.gather(task, return_exceptions=True)
    return task


async def test_text_goes_to_the_client_and_then_done() -> None:
    client = FakeClient()

    await _stream(client, make_account(), "a", "b")

    assert (client.texts, client.ends) == (["a", "b"], ["done"])


async def test_a_slow_reader_does_not_make_the_first_token_late() -> None:
    clock = FakeClock()
    account, client = make_account(clock), FakeClient(on_delta=lambda: clock.pass_s(2.0))

    await _stream(client, account, "a", "b")

    assert account.first_token_ms == 0.0
    assert account.client_wait_s == 4.0


async def test_the_account_counts_what_was_sent() -> None:
    account = make_account()

    await _stream(FakeClient(), account, "ab", "c")

    assert account.num_sent_chars == 3
    assert account.first_sent_s is not None


@pytest.mark.parametrize("num_texts", [0, 1])
async def test_an_error_is_told_before_and_after_the_first_text(num_texts: int) -> None:
    client, account = FakeClient(), make_account()
    error = EngineError("engine_disconnected", "It ended.")

    await _stream(client, account, *["a"] * num_texts, then=_raising(error))

    assert (client.ends, client.messages) == (["engine_disconnected"], ["It ended."])
    assert (account.finish_reason, account.error_code) == (
        FinishReason.ERROR,
        "engine_disconnected",
    )


async def test_a_defect_of_ours_is_told_without_its_message_and_goes_on() -> None:
    client = FakeClient()

    with pytest.raises(ValueError, match="customer"):
        await _stream(client, make_account(), then=_raising(ValueError("customer's code")))

    assert client.ends == ["internal_error"]
    assert "customer" not in client.messages[0]


@pytest.mark.parametrize("finish", [FinishReason.CANCELLED, FinishReason.SUPERSEDED])
async def test_a_completion_that_was_taken_back_is_done_with_its_reason(
    finish: FinishReason,
) -> None:
    client, account = FakeClient(), make_account()

    task = await _cancelled(client, account, finish.value)

    assert (client.ends, account.finish_reason) == (["done"], finish)
    assert task.cancelled()


async def test_a_closed_connection_is_told_nothing() -> None:
    client, account = FakeClient(), make_account()

    task = await _cancelled(client, account)

    assert (client.ends, account.finish_reason) == ([], FinishReason.CANCELLED)
    assert task.cancelled()


async def test_what_an_engine_says_cannot_pass_for_a_reason() -> None:
    client, account = FakeClient(), make_account()

    task = await _cancelled(client, account, "whatever")

    assert account.finish_reason is FinishReason.CANCELLED
    assert task.cancelled()


# The twins: the client has disconnected.


async def test_a_client_that_leaves_ends_its_completion_as_cancelled() -> None:
    client, account = FakeClient(leaves_after=1), make_account()

    await _stream(client, account, "a", "b", "c")

    assert (client.texts, account.finish_reason) == (["a"], FinishReason.CANCELLED)


async def test_a_client_that_left_is_not_counted_as_reached() -> None:
    account = make_account()

    await _stream(FakeClient(leaves_after=0), account, "abc")

    assert (account.num_sent_chars, account.first_sent_s) == (0, None)


async def test_a_client_that_left_before_the_end_does_no_harm() -> None:
    account = make_account()
    account.finish(FinishReason.STOP)

    await _stream(FakeClient(leaves_after=0), account)

    assert account.finish_reason is FinishReason.STOP


@pytest.mark.parametrize(
    "error", [EngineError("engine_disconnected", ""), TooManyRequests("gateway_at_capacity", "")]
)
async def test_an_error_is_accounted_though_the_client_has_left(error: CompletionError) -> None:
    account = make_account()

    await _stream(FakeClient(leaves_after=0), account, then=_raising(error))

    assert (account.finish_reason, account.error_code) == (FinishReason.ERROR, error.code)


async def test_a_defect_goes_on_though_the_client_has_left() -> None:
    with pytest.raises(ValueError, match="planted"):
        await _stream(
            FakeClient(leaves_after=0), make_account(), then=_raising(ValueError("planted"))
        )


async def test_a_cancelled_completion_ends_though_the_client_has_left() -> None:
    client, account = FakeClient(leaves_after=1), make_account()

    task = await _cancelled(client, account, FinishReason.SUPERSEDED.value)

    assert (client.ends, account.finish_reason) == ([], FinishReason.SUPERSEDED)
    assert task.cancelled()


@pytest.mark.parametrize("finish", [FinishReason.SHED, FinishReason.SUPERSEDED])
async def test_what_is_dropped_ends_regularly_and_empty(finish: FinishReason) -> None:
    client, account = FakeClient(), make_account()

    await _stream(client, account, then=_raising(CompletionDropped(finish)))

    assert (client.texts, client.ends, account.finish_reason) == ([], ["done"], finish)

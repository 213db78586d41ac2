"""A real gateway is stopped while completions run. It completes those that end in time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus

import aiohttp
import pytest
from websockets.exceptions import ConnectionClosed

from caret.client.websocket_client import CompletionStream
from caret.contracts.usage import CompletionRecord
from caret.foundation.ids import RequestId
from caret.foundation.web.connection_draining import SERVICE_RESTART
from tests.benchmarks.installation import create_home
from tests.functional.gateway.gateway_stack import Frame, Site, start_site, wait_until

DRAIN_S = 2
NUM_TOKENS = 300  # the fake engine takes less than a second for them


@pytest.fixture(scope="module")
def module_site(fake_engine_url: str) -> Iterator[Site]:
    with create_home() as home:
        home.environment["CARET_DRAIN_TIMEOUT_S"] = str(DRAIN_S)
        with start_site(home, fake_engine_url) as site:
            yield site


@pytest.fixture
async def stopping_site(module_site: Site) -> AsyncIterator[Site]:
    """A running gateway that the test stops. It is started again for the next test."""
    yield module_site
    await asyncio.to_thread(module_site.gateway.child.stop)
    await asyncio.to_thread(module_site.launch_gateway)


def _frame(site: Site, *, max_tokens: int) -> Frame:
    frame = {"type": "complete", "id": site.new_id(), "mode": "fim", "prefix": "a = "}
    return frame | {"suffix": "\n", "max_tokens": max_tokens}


async def test_a_running_completion_finishes_before_the_socket_closes_for_a_restart(
    stopping_site: Site,
) -> None:
    async with stopping_site.open_websocket() as socket:
        stream = CompletionStream(socket)
        frame = _frame(stopping_site, max_tokens=NUM_TOKENS)
        await stream.send(frame)
        first_frame = await stream.receive()
        stopping_site.gateway.child.request_stop()
        frames = [first_frame]
        while frames[-1]["type"] != "done":
            frames.append(await stream.receive())
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        code = socket.close_code
    await asyncio.to_thread(stopping_site.gateway.child.stop)
    record = await stopping_site.record_of(frames[-1]["meta"]["request_id"])

    assert frames[-1]["meta"]["generated_tokens"] == NUM_TOKENS
    assert code == SERVICE_RESTART
    assert record.generated_tokens == NUM_TOKENS


async def test_an_idle_socket_closes_immediately(stopping_site: Site) -> None:
    async with stopping_site.open_websocket() as socket:
        stopping_site.gateway.child.request_stop()
        async with asyncio.timeout(DRAIN_S / 2):
            await socket.wait_closed()

        assert socket.close_code == SERVICE_RESTART


async def test_a_stream_over_http_finishes_too(stopping_site: Site) -> None:
    body = {"prompt": "a = ", "suffix": "\n", "max_tokens": NUM_TOKENS, "stream": True}
    async with (
        stopping_site.http() as session,
        session.post("/v1/completions", json=body) as response,
    ):
        first_line = await response.content.readline()
        stopping_site.gateway.child.request_stop()
        remainder = await response.content.read()

    assert response.status == HTTPStatus.OK
    assert first_line.startswith(b"data: ")
    assert b'"finish_reason":"length"' in remainder
    assert remainder.rstrip().endswith(b"data: [DONE]")


async def test_a_completion_over_the_drain_timeout_is_cancelled_and_recorded(
    stopping_site: Site, fake_engine_url: str
) -> None:
    before = _completions_by_id(stopping_site).keys()
    async with aiohttp.ClientSession(fake_engine_url) as engine:
        (await engine.get("/fault/a%20stall")).close()
        try:
            async with stopping_site.open_websocket() as socket:
                stream = CompletionStream(socket)
                await stream.send(_frame(stopping_site, max_tokens=NUM_TOKENS))
                await _wait_for_engine_request(engine)
                stopping_site.gateway.child.request_stop()
                async with asyncio.timeout(DRAIN_S + 2):
                    await socket.wait_closed()
                code = socket.close_code
        finally:
            (await engine.get("/fault/none")).close()
    await asyncio.to_thread(stopping_site.gateway.child.stop)
    recorded = _completions_by_id(stopping_site)

    assert code == SERVICE_RESTART
    assert [recorded[request_id].finish_reason for request_id in recorded.keys() - before] == [
        "cancelled"
    ]


def _completions_by_id(site: Site) -> dict[RequestId, CompletionRecord]:
    """Return completions by request ID, because a record can be delivered twice."""
    completions = [record for record in site.records() if isinstance(record, CompletionRecord)]
    return {completion.request_id: completion for completion in completions}


async def _wait_for_engine_request(engine: aiohttp.ClientSession) -> None:
    async def has_request() -> bool:
        async with engine.get("/streams") as response:
            return await response.text() != "0"

    assert await wait_until(has_request)

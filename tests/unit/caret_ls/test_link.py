"""The link, with a fake gateway that has a real WebSocket server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from caret_ls.backoff import Backoff
from caret_ls.clock import LoopClock, SystemLoopClock
from caret_ls.frames import Frame
from caret_ls.gateway_connection import Address, ConnectionState, GatewayConnection, RequestEnded
from tests.fakes.polling import until
from tests.unit.caret_ls.gateways import Gateway, gateway
from tests.unit.caret_ls.provider_harness import TurnedClock


class Told:
    def __init__(self) -> None:
        self.states: list[ConnectionState] = []
        self.frames: list[Frame] = []

    def on_state(self, state: ConnectionState) -> None:
        self.states.append(state)

    def on_frame(self, frame: Frame) -> None:
        self.frames.append(frame)


@asynccontextmanager
async def linked(
    made: Gateway, clock: LoopClock | None = None
) -> AsyncIterator[tuple[GatewayConnection, Told]]:
    told = Told()
    link = GatewayConnection(told, Backoff(lambda: 0.0), clock or SystemLoopClock(), tick_s=0.01)
    running = asyncio.create_task(link.run())
    link.set_address(Address(made.url, "cpk_live_secret", "Neovim 0.12"))
    try:
        yield link, told
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def read(link: GatewayConnection, id: str) -> list[Frame]:
    async with link.request({"type": "complete", "id": id}) as answers:
        return [answer async for answer in answers]


async def test_it_says_who_it_is_and_asks() -> None:
    async with gateway() as made, linked(made) as (link, told):
        await until(lambda: told.states == [ConnectionState.CONNECTED])
        asked = asyncio.create_task(read(link, "1"))
        await until(lambda: len(made.heard) == 1)
        await made.says(type="delta", id="1", text="a")
        await made.says(type="delta", id="other", text="b")
        await made.says(type="done", id="1", finish_reason="stop")
        answers = await asked

    assert [answer["type"] for answer in answers] == ["delta", "done"]
    (headers,) = made.headers
    assert headers["Authorization"] == "Bearer cpk_live_secret"
    assert headers["X-Caret-Editor"] == "Neovim 0.12"
    assert made.heard == [{"type": "complete", "id": "1"}]


async def test_leaving_early_takes_it_back() -> None:
    async with gateway() as made, linked(made) as (link, told):
        await until(lambda: told.states == [ConnectionState.CONNECTED])
        asked = asyncio.create_task(read(link, "1"))
        await until(lambda: len(made.heard) == 1)
        asked.cancel()
        await until(lambda: len(made.heard) == 2)

    assert made.heard[1] == {"type": "cancel", "id": "1"}


async def test_an_error_ends_it_with_its_code() -> None:
    async with gateway() as made, linked(made) as (link, told):
        await until(lambda: told.states == [ConnectionState.CONNECTED])
        asked = asyncio.create_task(read(link, "1"))
        await until(lambda: len(made.heard) == 1)
        await made.says(type="error", id="1", code="rate_limited", message="", retry_after_s=2.5)
        with pytest.raises(RequestEnded) as caught:
            await asked

    assert (caught.value.code, caught.value.retry_after_s) == ("rate_limited", 2.5)
    assert len(made.heard) == 1, "an ended request must not be cancelled"


async def test_what_answers_nothing_is_told() -> None:
    async with gateway() as made, linked(made) as (_link, told):
        await until(lambda: told.states == [ConnectionState.CONNECTED])
        await made.says(type="policy", repository="", excluded=[], modes=[])
        await made.sockets[0].send("no json")
        await until(lambda: len(told.frames) == 2)

    assert [frame.get("type") for frame in told.frames] == ["policy", None]


async def test_when_the_gateway_goes_it_ends_and_comes_back() -> None:
    async with gateway() as made, linked(made) as (link, told):
        await until(lambda: told.states == [ConnectionState.CONNECTED])
        asked = asyncio.create_task(read(link, "1"))
        await until(lambda: len(made.heard) == 1)
        await made.sockets[0].close(1001)
        with pytest.raises(RequestEnded, match="offline"):
            await asked
        await until(lambda: told.states[-1] is ConnectionState.CONNECTED and len(made.sockets) == 2)

    assert told.states[:3] == [
        ConnectionState.CONNECTED,
        ConnectionState.OFFLINE,
        ConnectionState.CONNECTED,
    ]


async def test_after_an_hour_s_sleep_it_connects_anew() -> None:
    clock = TurnedClock()
    async with gateway() as made, linked(made, clock) as (_link, told):
        await until(lambda: told.states == [ConnectionState.CONNECTED])
        await asyncio.sleep(0.05)
        before = len(made.sockets)
        clock.slept_s = 3_600.0
        await until(lambda: len(made.sockets) == 2 and told.states[-1] is ConnectionState.CONNECTED)

    assert before == 1


async def test_without_a_connection_nothing_can_be_asked() -> None:
    link = GatewayConnection(Told(), Backoff(lambda: 0.0), SystemLoopClock())

    with pytest.raises(RequestEnded, match="offline"):
        await read(link, "1")
    assert not link.send({"type": "typing"})


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_signed_out(status: int) -> None:
    async with gateway() as made:
        made.refusal = status
        async with linked(made) as (link, told):
            await until(lambda: told.states == [ConnectionState.UNAUTHENTICATED])
            made.refusal = None
            link.set_address(Address(made.url, "cpk_live_other"))
            await until(lambda: told.states[-1] is ConnectionState.CONNECTED)

    assert len(made.headers) == 2, "a rejected key must not be tried repeatedly"


async def test_a_key_that_was_refused_is_tried_again_when_asked_to() -> None:
    async with gateway() as made:
        made.refusal = 401
        async with linked(made) as (link, told):
            await until(lambda: told.states == [ConnectionState.UNAUTHENTICATED])
            made.refusal = None
            link.set_address(Address(made.url, "cpk_live_secret", "Neovim 0.12"))
            await until(lambda: told.states[-1] is ConnectionState.CONNECTED)

    assert len(made.headers) == 2


async def test_a_revoked_key_is_signed_out() -> None:
    async with gateway() as made, linked(made) as (_link, told):
        await until(lambda: told.states == [ConnectionState.CONNECTED])
        await made.sockets[0].close(4401)
        await until(lambda: len(told.states) == 2)

    assert told.states[1] is ConnectionState.UNAUTHENTICATED


async def test_a_gateway_that_fails_is_tried_again() -> None:
    async with gateway() as made:
        made.refusal = 503
        async with linked(made) as (_link, told):
            await until(lambda: len(made.headers) == 2)
            made.refusal = None
            await until(lambda: told.states[-1] is ConnectionState.CONNECTED)

    assert set(told.states[:-1]) == {ConnectionState.OFFLINE}


async def test_without_a_key_it_is_signed_out_and_goes_nowhere() -> None:
    async with gateway() as made, linked(made) as (link, told):
        await until(lambda: told.states == [ConnectionState.CONNECTED])
        link.set_address(None)
        await until(lambda: told.states[-1] is ConnectionState.UNAUTHENTICATED)

    assert len(made.sockets) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[", "https://127.0.0.1:1"])
async def test_where_there_is_no_gateway_it_is_offline(url: str) -> None:
    told = Told()
    link = GatewayConnection(told, Backoff(lambda: 0.0), SystemLoopClock())
    running = asyncio.create_task(link.run())
    link.set_address(Address(url, "key"))
    try:
        await until(lambda: len(told.states) >= 2)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert set(told.states[1:]) == {ConnectionState.OFFLINE}


async def test_a_proxy_that_cannot_be_used_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1")
    told = Told()
    link = GatewayConnection(told, Backoff(lambda: 0.0), SystemLoopClock())
    running = asyncio.create_task(link.run())
    link.set_address(Address("https://gateway.example", "key"))
    await until(lambda: ConnectionState.OFFLINE in told.states)
    await asyncio.sleep(0)
    is_running = not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert is_running


def test_a_key_is_not_in_what_is_shown_of_an_address() -> None:
    assert "secret" not in repr(Address("http://a", "secret"))

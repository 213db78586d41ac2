"""The gateway connection, with a fake gateway that has a real WebSocket server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from caret_ls.backoff import Backoff
from caret_ls.clock import LoopClock, SystemLoopClock
from caret_ls.frames import Frame
from caret_ls.gateway_connection import Address, ConnectionState, GatewayConnection, RequestEnded
from tests.fakes.polling import wait_until
from tests.unit.caret_ls.fake_gateway import Gateway, gateway
from tests.unit.caret_ls.provider_harness import ManualClock


class Recorder:
    """Records the states and the frames that the connection reports to its listener."""

    def __init__(self) -> None:
        self.states: list[ConnectionState] = []
        self.frames: list[Frame] = []

    def on_state(self, state: ConnectionState) -> None:
        self.states.append(state)

    def on_frame(self, frame: Frame) -> None:
        self.frames.append(frame)


@asynccontextmanager
async def connected(
    fake: Gateway, clock: LoopClock | None = None, backoff: Backoff | None = None
) -> AsyncIterator[tuple[GatewayConnection, Recorder]]:
    """Run a connection to the fake gateway, and yield it and its recorder.

    The connection checks every 10 ms whether the machine has slept.
    """
    recorder = Recorder()
    link = GatewayConnection(
        recorder, backoff or Backoff(lambda: 0.0), clock or SystemLoopClock(), tick_s=0.01
    )
    running = asyncio.create_task(link.run())
    link.set_address(Address(fake.url, "cpk_live_secret", "Neovim 0.12"))
    try:
        yield link, recorder
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def request_frames(link: GatewayConnection, id: str) -> list[Frame]:
    """Send a request with this ID, and return its frames."""
    async with link.request({"type": "complete", "id": id}) as frames:
        return [frame async for frame in frames]


async def test_a_request_is_sent_with_the_key_and_the_editor_and_gets_its_frames() -> None:
    async with gateway() as fake, connected(fake) as (link, recorder):
        await wait_until(lambda: recorder.states == [ConnectionState.CONNECTED])
        request = asyncio.create_task(request_frames(link, "1"))
        await wait_until(lambda: len(fake.received) == 1)
        await fake.send(type="delta", id="1", text="a")
        await fake.send(type="delta", id="other", text="b")
        await fake.send(type="done", id="1", finish_reason="stop")
        frames = await request

    assert [frame["type"] for frame in frames] == ["delta", "done"]
    (headers,) = fake.headers
    assert headers["Authorization"] == "Bearer cpk_live_secret"
    assert headers["X-Caret-Editor"] == "Neovim 0.12"
    assert fake.received == [{"type": "complete", "id": "1"}]


async def test_leaving_a_request_early_cancels_it() -> None:
    async with gateway() as fake, connected(fake) as (link, recorder):
        await wait_until(lambda: recorder.states == [ConnectionState.CONNECTED])
        request = asyncio.create_task(request_frames(link, "1"))
        await wait_until(lambda: len(fake.received) == 1)
        request.cancel()
        await wait_until(lambda: len(fake.received) == 2)

    assert fake.received[1] == {"type": "cancel", "id": "1"}


async def test_an_error_frame_ends_the_request_with_its_code() -> None:
    async with gateway() as fake, connected(fake) as (link, recorder):
        await wait_until(lambda: recorder.states == [ConnectionState.CONNECTED])
        request = asyncio.create_task(request_frames(link, "1"))
        await wait_until(lambda: len(fake.received) == 1)
        await fake.send(type="error", id="1", code="rate_limited", message="", retry_after_s=2.5)
        with pytest.raises(RequestEnded) as exc_info:
            await request

    assert (exc_info.value.code, exc_info.value.retry_after_s) == ("rate_limited", 2.5)
    assert len(fake.received) == 1, "an ended request must not be cancelled"


async def test_frames_without_a_request_go_to_the_listener() -> None:
    async with gateway() as fake, connected(fake) as (_link, recorder):
        await wait_until(lambda: recorder.states == [ConnectionState.CONNECTED])
        await fake.send(type="policy", repository="", excluded_globs=[], modes=[])
        await fake.sockets[0].send("no json")  # the listener gets an empty frame
        await wait_until(lambda: len(recorder.frames) == 2)

    assert [frame.get("type") for frame in recorder.frames] == ["policy", None]


async def test_a_lost_connection_ends_requests_and_is_opened_again() -> None:
    async with gateway() as fake, connected(fake) as (link, recorder):
        await wait_until(lambda: recorder.states == [ConnectionState.CONNECTED])
        request = asyncio.create_task(request_frames(link, "1"))
        await wait_until(lambda: len(fake.received) == 1)
        await fake.sockets[0].close(1001)  # close code of a server that goes away
        with pytest.raises(RequestEnded, match="offline"):
            await request
        await wait_until(
            lambda: recorder.states[-1] is ConnectionState.CONNECTED and len(fake.sockets) == 2
        )

    assert recorder.states[:3] == [
        ConnectionState.CONNECTED,
        ConnectionState.OFFLINE,
        ConnectionState.CONNECTED,
    ]


async def test_the_connection_is_reopened_after_the_machine_slept() -> None:
    clock = ManualClock()
    async with gateway() as fake, connected(fake, clock) as (_link, recorder):
        await wait_until(lambda: recorder.states == [ConnectionState.CONNECTED])
        await asyncio.sleep(0.05)  # several checks; the machine has not slept yet
        num_sockets_before_sleep = len(fake.sockets)
        clock.slept_s = 3_600.0
        await wait_until(
            lambda: len(fake.sockets) == 2 and recorder.states[-1] is ConnectionState.CONNECTED
        )

    assert num_sockets_before_sleep == 1


async def test_a_request_without_a_connection_fails() -> None:
    link = GatewayConnection(Recorder(), Backoff(lambda: 0.0), SystemLoopClock())

    with pytest.raises(RequestEnded, match="offline"):
        await request_frames(link, "1")
    assert not link.send({"type": "typing"})


@pytest.mark.parametrize("status", [401, 403])
async def test_a_rejected_key_is_unauthenticated_and_not_retried(status: int) -> None:
    async with gateway() as fake:
        fake.refusal = status
        async with connected(fake) as (link, recorder):
            await wait_until(lambda: recorder.states == [ConnectionState.UNAUTHENTICATED])
            fake.refusal = None
            link.set_address(Address(fake.url, "cpk_live_other"))
            await wait_until(lambda: recorder.states[-1] is ConnectionState.CONNECTED)

    assert len(fake.headers) == 2, "a rejected key must not be tried repeatedly"


async def test_a_rejected_key_does_not_use_the_delay_of_a_failing_gateway() -> None:
    drawn_delays: list[float] = []

    def draw() -> float:
        """Return the random part of a delay. The backoff calls this for each delay."""
        drawn_delays.append(0.0)
        return 0.0

    async with gateway() as fake:
        fake.refusal = 401
        async with connected(fake, backoff=Backoff(draw)) as (_link, recorder):
            await wait_until(lambda: recorder.states == [ConnectionState.UNAUTHENTICATED])

    assert not drawn_delays, "the delay of a failing gateway must not be used"


async def test_a_rejected_key_is_tried_again_when_the_address_is_set() -> None:
    async with gateway() as fake:
        fake.refusal = 401
        async with connected(fake) as (link, recorder):
            await wait_until(lambda: recorder.states == [ConnectionState.UNAUTHENTICATED])
            fake.refusal = None
            link.set_address(Address(fake.url, "cpk_live_secret", "Neovim 0.12"))
            await wait_until(lambda: recorder.states[-1] is ConnectionState.CONNECTED)

    assert len(fake.headers) == 2


async def test_a_revoked_key_is_unauthenticated() -> None:
    async with gateway() as fake, connected(fake) as (_link, recorder):
        await wait_until(lambda: recorder.states == [ConnectionState.CONNECTED])
        await fake.sockets[0].close(4401)  # Caret's close code for a key that is no longer valid
        await wait_until(lambda: len(recorder.states) == 2)

    assert recorder.states[1] is ConnectionState.UNAUTHENTICATED


async def test_a_failing_gateway_is_tried_again() -> None:
    async with gateway() as fake:
        fake.refusal = 503
        async with connected(fake) as (_link, recorder):
            await wait_until(lambda: len(fake.headers) == 2)
            fake.refusal = None
            await wait_until(lambda: recorder.states[-1] is ConnectionState.CONNECTED)

    assert set(recorder.states[:-1]) == {ConnectionState.OFFLINE}


async def test_without_a_key_the_connection_is_unauthenticated_and_not_reopened() -> None:
    async with gateway() as fake, connected(fake) as (link, recorder):
        await wait_until(lambda: recorder.states == [ConnectionState.CONNECTED])
        link.set_address(None)
        await wait_until(lambda: recorder.states[-1] is ConnectionState.UNAUTHENTICATED)

    assert len(fake.sockets) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[", "https://127.0.0.1:1"])
async def test_an_unreachable_gateway_is_offline(url: str) -> None:
    recorder = Recorder()
    link = GatewayConnection(recorder, Backoff(lambda: 0.0), SystemLoopClock())
    running = asyncio.create_task(link.run())
    link.set_address(Address(url, "key"))
    try:
        await wait_until(lambda: len(recorder.states) >= 2)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert set(recorder.states) == {ConnectionState.OFFLINE}


async def test_an_unusable_proxy_is_offline_and_does_not_end_the_connections_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1")
    recorder = Recorder()
    link = GatewayConnection(recorder, Backoff(lambda: 0.0), SystemLoopClock())
    running = asyncio.create_task(link.run())
    link.set_address(Address("https://gateway.example", "key"))
    await wait_until(lambda: ConnectionState.OFFLINE in recorder.states)
    await asyncio.sleep(0)  # an error of the connection would end the task now
    is_running = not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert is_running


def test_the_repr_of_an_address_does_not_contain_the_key() -> None:
    assert "secret" not in repr(Address("http://a", "secret"))

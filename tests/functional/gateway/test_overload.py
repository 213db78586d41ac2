"""Limits for clients that send too much or read too slowly. Other tenants are not affected."""

import asyncio
import json
import socket
import time
from collections import Counter
from contextlib import suppress
from typing import Final

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from inference.completion.response_writer import MAX_SEND_S
from inference.gateway.protocol.connection import MAX_CONCURRENT_COMPLETIONS
from tests.functional.gateway.gateway_stack import Frame, Site, receive, request_completion

pytestmark = pytest.mark.engine

_NUM_REQUESTS: Final = 200
# Another tenant's request may wait for MAX_CONCURRENT_COMPLETIONS completions in the engine. That
# takes up to 2 s, but longer on a busy machine.
_MAX_LATENCY_S: Final = 20.0
_CODES: Final = {"too_many_requests", "engine_unavailable"}


# With one path, each request supersedes the one before. With a path for each request, none is
# superseded, and most are rejected. With 20 paths, some are superseded and some are rejected.
@pytest.mark.parametrize(
    "num_paths",
    [
        20,
        pytest.param(1, marks=pytest.mark.deep),
        pytest.param(_NUM_REQUESTS, marks=pytest.mark.deep),
    ],
)
async def test_each_of_many_concurrent_requests_has_exactly_one_end(
    site: Site, long_frame: Frame, num_paths: int
) -> None:
    async with site.open_websocket() as busy, site.stream(site.globex_key) as other_tenant:
        for number in range(_NUM_REQUESTS):
            frame = {**long_frame, "id": str(number), "path": f"{number % num_paths}.py"}
            await busy.send(json.dumps({"type": "complete", **frame, "max_tokens": 16}))
        began_s = time.monotonic()
        await request_completion(other_tenant, {"id": "1", "prefix": "import ", "max_tokens": 2})
        other_tenant_s = time.monotonic() - began_s
        ends: list[Frame] = []
        while len(ends) < _NUM_REQUESTS:
            answer = await receive(busy)
            ends += [answer] if answer["type"] != "delta" else []
        await busy.send(json.dumps({"type": "complete", "id": "last", "prefix": "import "}))
        while (last := await receive(busy))["type"] == "delta":
            pass

    assert Counter(end["id"] for end in ends) == Counter(map(str, range(_NUM_REQUESTS)))
    assert other_tenant_s < _MAX_LATENCY_S
    codes = {end["code"] for end in ends if end["type"] == "error"}
    # If the gateway gets no CPU time for a second, it reports the engine as unavailable.
    assert codes <= _CODES
    assert (last["id"], last["type"]) == ("last", "done")  # no request had a second end
    assert await site.becomes_idle()


async def test_a_connection_has_a_limit_of_concurrent_requests(
    site: Site, long_frame: Frame
) -> None:
    frames = [
        json.dumps({"type": "complete", **long_frame, "id": str(number), "path": str(number)})
        for number in range(_NUM_REQUESTS)
    ]
    async with site.open_websocket() as busy:
        await asyncio.gather(*(busy.send(frame) for frame in frames))
        rejected: set[tuple[int, str]] = set()
        while len(rejected) < _NUM_REQUESTS // 2:
            answer = await receive(busy)
            if answer["type"] == "error":
                rejected.add((int(answer["id"]), answer["code"]))

    # The first requests get slots; those that arrive while these run are rejected.
    # (`engine_unavailable`: see above.)
    assert {code for _, code in rejected} <= _CODES
    over_limit = {number for number, code in rejected if code == "too_many_requests"}
    assert over_limit
    assert over_limit.isdisjoint(range(MAX_CONCURRENT_COMPLETIONS))


@pytest.mark.deep  # long
async def test_a_client_that_does_not_read_is_disconnected_and_delays_no_other_tenant(
    site: Site,
) -> None:
    slow_socket = socket.socket()
    slow_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow_socket.setblocking(False)
    host, port = site.url.removeprefix("http://").split(":")
    await asyncio.get_running_loop().sock_connect(slow_socket, (host, int(port)))
    connection = site.connect_websocket(
        {"Authorization": f"Bearer {site.acme_key}"}, sock=slow_socket, max_queue=1
    )

    async with connection as stalled, site.stream(site.globex_key) as other_tenant:
        await _fill_send_buffers(stalled)
        slowest_s = 0.0
        end_s = time.monotonic() + MAX_SEND_S + 1.0
        while time.monotonic() < end_s:
            began_s = time.monotonic()
            await request_completion(
                other_tenant, {"id": site.new_id(), "prefix": "import ", "max_tokens": 2}
            )
            slowest_s = max(slowest_s, time.monotonic() - began_s)
            await asyncio.sleep(0.05)
        with pytest.raises(ConnectionClosed):
            await _read_to_the_end(stalled)

    assert slowest_s < _MAX_LATENCY_S


async def _fill_send_buffers(stalled: ClientConnection) -> None:
    """Send frames without reading the responses until the connection blocks.

    Each frame reports an outcome of an unknown completion, which the gateway answers with an error.
    """
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(0.5):
                await stalled.send('{"type":"outcome","id":"nothing","event":"shown"}')


async def _read_to_the_end(stalled: ClientConnection) -> None:
    async with asyncio.timeout(60.0):
        while True:
            await stalled.recv()

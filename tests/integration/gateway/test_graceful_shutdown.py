"""A real gateway is stopped while completions run. It finishes those that end in time.

The time is the setting CARET_DRAIN_TIMEOUT_S.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import aiohttp
import pytest
from websockets.exceptions import ConnectionClosed

from caret.contracts.usage import CompletionRecord
from caret.foundation.ids import RequestId
from caret.foundation.web.connection_draining import SERVICE_RESTART
from tests.benchmarks.installation import build_gateway_service, create_home
from tests.functional.gateway.gateway_stack import (
    Frame,
    PatientStream,
    Site,
    receive,
    start_site,
    wait_until,
)
from tests.integration.gateway.engine_control import held_engine, wait_until_busy
from tests.stack.ports import free_ports

LONG_DRAIN_S: Final = 60  # the completions end much earlier, even on a busy machine
SHORT_DRAIN_S: Final = 1
NUM_TOKENS: Final = 64  # a held engine pauses before it has written them


@pytest.fixture(scope="module")
def module_site(fake_engine_url: str) -> Iterator[Site]:
    with create_home() as home, start_site(home, fake_engine_url) as site:
        site.gateway.child.stop()  # each test starts a gateway of its own
        yield site


@contextmanager
def _running_gateway(site: Site, *, drain_s: int) -> Iterator[Site]:
    """Run a gateway with this CARET_DRAIN_TIMEOUT_S, and with the site's Valkey and journal."""
    home = replace(
        site.home, environment=site.home.environment | {"CARET_DRAIN_TIMEOUT_S": str(drain_s)}
    )
    port, metrics_port = free_ports(2)
    service = build_gateway_service(
        home, port=port, replicas=[site.engine_url], metrics_port=metrics_port
    )
    running = replace(
        site,
        url=f"http://127.0.0.1:{port}",
        metrics_url=f"http://127.0.0.1:{metrics_port}/metrics",
        gateway=service,
    )
    running.launch_gateway()
    try:
        yield running
    finally:
        service.child.stop()


@pytest.fixture
def stopping_site(module_site: Site) -> Iterator[Site]:
    """A running gateway that the test stops."""
    with _running_gateway(module_site, drain_s=LONG_DRAIN_S) as site:
        yield site


@pytest.fixture
def impatient_site(module_site: Site) -> Iterator[Site]:
    """A running gateway that gives completions little time when the test stops it."""
    with _running_gateway(module_site, drain_s=SHORT_DRAIN_S) as site:
        yield site


def _frame(site: Site, *, max_tokens: int) -> Frame:
    frame = {"type": "complete", "id": site.new_id(), "mode": "fim", "prefix": "a = "}
    return frame | {"suffix": "\n", "max_tokens": max_tokens}


async def _stop_gateway(site: Site) -> None:
    """Tell the gateway to stop, and wait until it accepts no more connections."""
    site.gateway.child.request_stop()

    async def is_stopping() -> bool:
        try:
            async with site.http() as session, session.get("/healthz") as response:
                return response.status != HTTPStatus.OK
        except aiohttp.ClientError:
            return True

    assert await wait_until(is_stopping)


async def _wait_for_exit(site: Site) -> None:
    """Wait until the gateway has ended by itself, after its last delivery of records."""

    async def has_ended() -> bool:
        return not site.gateway.child.is_alive

    assert await wait_until(has_ended)


async def test_a_running_completion_finishes_before_the_socket_closes_for_a_restart(
    stopping_site: Site,
) -> None:
    async with stopping_site.open_websocket() as socket:
        stream = PatientStream(socket)
        async with held_engine(stopping_site.engine_url):
            await stream.send(_frame(stopping_site, max_tokens=NUM_TOKENS))
            frames = [await stream.receive()]
            await _stop_gateway(stopping_site)
        while frames[-1]["type"] != "done":
            frames.append(await stream.receive())
        with pytest.raises(ConnectionClosed):
            await receive(socket)
        code = socket.close_code
    await _wait_for_exit(stopping_site)
    record = await stopping_site.record_of(frames[-1]["meta"]["request_id"])

    assert frames[-1]["meta"]["generated_tokens"] == NUM_TOKENS
    assert code == SERVICE_RESTART
    assert record.generated_tokens == NUM_TOKENS


async def test_an_idle_socket_closes_immediately(stopping_site: Site) -> None:
    async with stopping_site.open_websocket() as socket:
        stopping_site.gateway.child.request_stop()
        async with asyncio.timeout(LONG_DRAIN_S / 2):
            await socket.wait_closed()

        assert socket.close_code == SERVICE_RESTART


async def test_a_running_stream_over_http_finishes(stopping_site: Site) -> None:
    body = {"prompt": "a = ", "suffix": "\n", "max_tokens": NUM_TOKENS, "stream": True}
    async with stopping_site.http() as session:
        async with held_engine(stopping_site.engine_url):
            response = await session.post("/v1/completions", json=body)
            first_line = await response.content.readline()
            await _stop_gateway(stopping_site)
        remainder = await response.content.read()

    assert response.status == HTTPStatus.OK
    assert first_line.startswith(b"data: ")
    assert b'"finish_reason":"length"' in remainder
    assert remainder.rstrip().endswith(b"data: [DONE]")


async def test_a_completion_over_the_drain_timeout_is_cancelled_and_recorded(
    impatient_site: Site,
) -> None:
    await impatient_site.wait_for_deliveries()  # of records that earlier gateways have left behind
    ids_before = _completions_by_id(impatient_site).keys()
    async with held_engine(impatient_site.engine_url):
        async with impatient_site.open_websocket() as socket:
            stream = PatientStream(socket)
            await stream.send(_frame(impatient_site, max_tokens=NUM_TOKENS))
            await wait_until_busy(impatient_site.engine_url)
            impatient_site.gateway.child.request_stop()
            async with asyncio.timeout(SHORT_DRAIN_S + 20):  # 20 s more for a busy machine
                await socket.wait_closed()
            code = socket.close_code
        await _wait_for_exit(impatient_site)
    recorded = _completions_by_id(impatient_site)

    assert code == SERVICE_RESTART
    (new_id,) = recorded.keys() - ids_before
    assert recorded[new_id].finish_reason == "cancelled"


def _completions_by_id(site: Site) -> dict[RequestId, CompletionRecord]:
    completions = [record for record in site.records() if isinstance(record, CompletionRecord)]
    return {completion.request_id: completion for completion in completions}

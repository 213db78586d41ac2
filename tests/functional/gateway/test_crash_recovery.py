"""Processes killed while completions run: the engine, Redis, the gateway itself."""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from http import HTTPStatus

import pytest

from caret.client.websocket_client import GatewayRefused
from caret.contracts.usage import CompletionRecord, FinishReason
from caret.local.processes.service import await_ready
from tests.functional.gateway.gateway_stack import (
    Frame,
    Site,
    receive,
    request_completion,
    wait_until,
)
from tests.stack.running import Engine

pytestmark = pytest.mark.engine
RESTART_S = 300.0  # time for the engine to restart, on two busy cores


@pytest.mark.deep  # the engine takes half a minute to restart
async def test_a_client_of_a_killed_engine_gets_its_partial_text_soon(
    site: Site, engine: Engine, long_frame: Frame
) -> None:
    async with site.open_websocket() as socket, site.http() as session:
        await socket.send(json.dumps({"type": "complete", **long_frame, "id": "1"}))
        first = await receive(socket)
        killed_pid = engine.pid
        os.kill(killed_pid, signal.SIGKILL)
        killed_s = time.monotonic()
        while (end := await receive(socket))["type"] == "delta":
            pass
        ended_after_s = time.monotonic() - killed_s
        async with session.get("/healthz") as response:
            status = response.status
        await socket.send(json.dumps({"type": "complete", **long_frame, "id": "2"}))
        error = await receive(socket)

        async def is_back() -> bool:
            return await _completes(site, long_frame)

        is_back_in_time = await wait_until(is_back, timeout_s=RESTART_S)

    assert first["type"] == "delta"
    # No other replica can continue the text, so it ends as at the token limit.
    assert (end["type"], end["finish_reason"]) == ("done", "length")
    assert end["meta"]["filter_reason"] == "engine_disconnected"
    assert ended_after_s < 10.0  # usually less than a second
    assert status == HTTPStatus.OK
    assert (error["type"], error["code"]) == ("error", "engine_unavailable")
    assert is_back_in_time, "completions did not recover with the engine"
    assert all(pool["pid"] not in (None, killed_pid) for pool in engine.stack.pools)
    finishes = [(record.finish_reason, record.filter_reason) for record in _completions(site)]
    assert finishes.count((FinishReason.LENGTH, "engine_disconnected")) == 1


@pytest.mark.deep  # long
async def test_completions_continue_without_redis_and_are_recorded_afterwards(
    fragile_site: Site, long_frame: Frame
) -> None:
    site = fragile_site
    site.valkey.child.stop()
    request_ids = []
    async with site.stream() as stream:
        for _ in range(20):
            _, done = await request_completion(
                stream, {**long_frame, "id": site.new_id(), "max_tokens": 4}
            )
            request_ids.append(done["meta"]["request_id"])
            # The pauses take two seconds: several attempts to send the records fail.
            await asyncio.sleep(0.1)
    _restart_valkey(site)

    record_counts = await _count_records(site, len(request_ids))

    assert record_counts == dict.fromkeys(request_ids, 1)


async def test_a_restarted_gateway_delivers_the_records_of_a_killed_one(
    fragile_site: Site, long_frame: Frame
) -> None:
    site = fragile_site
    site.valkey.child.stop()
    request_ids = []
    async with site.stream() as stream:
        for _ in range(10):
            _, done = await request_completion(
                stream, {**long_frame, "id": site.new_id(), "max_tokens": 4}
            )
            request_ids.append(done["meta"]["request_id"])
    site.gateway.child.kill()
    _restart_valkey(site)
    assert site.records() == [], "the killed gateway has delivered records"
    site.launch_gateway()

    record_counts = await _count_records(site, len(request_ids))

    assert record_counts == dict.fromkeys(request_ids, 1)
    assert await _completes(site, long_frame)


@pytest.mark.deep  # long
async def test_a_gateway_killed_in_mid_stream_frees_the_engine(
    fragile_site: Site, long_frame: Frame
) -> None:
    site = fragile_site
    async with site.open_websocket() as socket:
        await socket.send(json.dumps({"type": "complete", **long_frame, "id": "1"}))
        assert (await receive(socket))["type"] == "delta"
        site.gateway.child.kill()

    assert await site.becomes_idle()
    site.launch_gateway()
    assert await _completes(site, long_frame)


async def _completes(site: Site, frame: Frame) -> bool:
    try:
        async with site.stream() as stream:
            _, done = await request_completion(stream, {**frame, "id": "1", "max_tokens": 2})
    except (GatewayRefused, OSError):
        return False
    return done["finish_reason"] in ("stop", "length", "filtered")


def _restart_valkey(site: Site) -> None:
    site.valkey.launch()
    await_ready(site.valkey)


async def _count_records(site: Site, count: int) -> dict[str, int]:
    """Count the different records of each completion, after `count` exist and others had time to
    arrive."""

    async def are_delivered() -> bool:
        return len(_completions(site)) >= count

    # The gateway keeps the records in its journal, a file, and sends them to Redis. While Redis is
    # down, the pauses between its attempts grow to 5 s.
    assert await wait_until(are_delivered), "not all records were delivered"
    await asyncio.sleep(0.3)
    return dict(Counter(str(record.request_id) for record in _completions(site)))


def _completions(site: Site) -> list[CompletionRecord]:
    return [record for record in site.records() if isinstance(record, CompletionRecord)]

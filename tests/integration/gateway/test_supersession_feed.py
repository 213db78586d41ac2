"""A newer request supersedes an older one for the same file across gateways, on a real Valkey."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis

from caret.contracts.usage import FinishReason
from caret.foundation.concurrency.wait_for import keep_cancellations
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.paths import EmbeddedPaths
from caret.local.processes.service import await_ready
from inference.gateway.supersession.feed import CHANNEL, SupersessionFeed
from tests.fakes.clock import FakeClock
from tests.fakes.supersession import ClaimingGateway

TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedPaths:
    return EmbeddedPaths(Path(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def valkey(paths: EmbeddedPaths) -> Iterator[EmbeddedValkey]:
    with EmbeddedValkey(paths) as valkey:
        yield valkey


@pytest.fixture
async def gateways(
    paths: EmbeddedPaths, valkey: EmbeddedValkey
) -> AsyncIterator[list[ClaimingGateway]]:
    """Two gateways that share a clock."""
    clock = FakeClock()
    async with _gateway(paths, clock) as first, _gateway(paths, clock) as second:
        yield [first, second]


@asynccontextmanager
async def _gateway(paths: EmbeddedPaths, clock: FakeClock) -> AsyncIterator[ClaimingGateway]:
    gateway = ClaimingGateway(clock)
    async with Redis.from_url(paths.redis_url.read_text().strip(), socket_timeout=5) as redis:
        feed = asyncio.create_task(SupersessionFeed(redis, gateway.queue, gateway.registry).run())
        try:
            yield gateway
        finally:
            feed.cancel()
            await asyncio.gather(feed, return_exceptions=True)
            await gateway.cancel_requests()


async def _supersedes(newer_at: ClaimingGateway, older_at: ClaimingGateway) -> bool:
    """Return True if a newer request at one gateway supersedes an older one at the other.

    The requests are repeated until the older one ends: a gateway may not be connected yet.
    """
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            older = await older_at.begin_request()
            await newer_at.begin_request()
            await asyncio.wait({older.task}, timeout=0.2)
            if older.end is not None:
                return older.end == FinishReason.SUPERSEDED


async def test_a_newer_request_on_one_gateway_supersedes_an_older_on_another(
    gateways: list[ClaimingGateway],
) -> None:
    first, second = gateways

    assert await _supersedes(first, second)
    assert await _supersedes(second, first)


async def test_the_newer_request_continues(gateways: list[ClaimingGateway]) -> None:
    first, second = gateways
    assert await _supersedes(first, second)

    newer = first.requests[-1]
    await asyncio.sleep(0.1)

    assert newer.end is None


async def test_a_feed_ends_when_it_is_cancelled_at_any_step_of_its_start(
    paths: EmbeddedPaths, valkey: EmbeddedValkey
) -> None:
    """A step is a pass of the event loop.

    If Valkey responds at once, the feed has subscribed after 13 passes. 80 leave room for slower
    responses.
    """
    keep_cancellations()  # as the gateway does at its start
    endless = []  # numbers of steps after which a cancellation did not end the feed
    for num_steps in range(80):
        gateway = ClaimingGateway(FakeClock())
        async with Redis.from_url(paths.redis_url.read_text().strip(), socket_timeout=5) as redis:
            feed = SupersessionFeed(redis, gateway.queue, gateway.registry)
            running = asyncio.create_task(feed.run())
            for _ in range(num_steps):
                await asyncio.sleep(0)
            running.cancel()
            ended, _ = await asyncio.wait({running}, timeout=TIMEOUT_S)
            if not ended:
                endless.append(num_steps)

    assert endless == []


async def test_an_unreadable_message_is_ignored(
    gateways: list[ClaimingGateway], paths: EmbeddedPaths
) -> None:
    first, second = gateways
    assert await _supersedes(first, second)
    assert await _supersedes(second, first)  # so both gateways are connected

    async with Redis.from_url(paths.redis_url.read_text().strip()) as stranger:
        for message in (b"", b"\x93\x01\x02\x03", b"garbage" * 100):
            await stranger.publish(CHANNEL, message)

    assert await _supersedes(first, second)


async def test_supersession_works_again_after_a_redis_restart(
    gateways: list[ClaimingGateway], valkey: EmbeddedValkey
) -> None:
    first, second = gateways
    assert await _supersedes(first, second)
    valkey.child.stop()
    for _ in range(20):  # their messages cannot be sent, and must not block later ones
        await first.begin_request()
    await asyncio.sleep(0.3)
    valkey.launch()
    await asyncio.to_thread(await_ready, valkey)

    assert await _supersedes(first, second)

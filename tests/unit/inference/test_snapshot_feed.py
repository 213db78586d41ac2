"""The feed from Redis to the authority, over a fake Redis (`tests/integration` uses the real
one)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisGone

from caret.contracts.snapshot import HOME_HEARD, TenantSnapshot, encode_snapshot
from inference.gateway.snapshots.snapshot_feed import SnapshotFeed
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from tests.fakes.clock import FakeClock
from tests.fakes.polling import until
from tests.fakes.redis import FakeRedis
from tests.fakes.tenants import ACME, GLOBEX, ROOT_SECRET, make_snapshot


def _parts() -> tuple[FakeRedis, SnapshotStore, SnapshotFeed]:
    authority = SnapshotStore(root_secret=ROOT_SECRET, clock=FakeClock(), max_age_s=300)
    redis = FakeRedis()
    return redis, authority, SnapshotFeed(cast(Redis, redis), authority)


async def test_what_is_published_is_taken_in_and_confirmed() -> None:
    redis, authority, feed = _parts()
    redis.publish_snapshot(make_snapshot(version=3))

    await feed.sync()

    assert authority.versions == {ACME: 3}
    assert authority.is_fresh()


async def test_a_newer_version_is_taken_in() -> None:
    redis, authority, feed = _parts()
    redis.publish_snapshot(make_snapshot(version=3))
    await feed.sync()

    redis.publish_snapshot(make_snapshot(version=4))
    await feed.sync()

    assert authority.versions == {ACME: 4}


async def test_without_a_change_the_versions_are_not_read_again() -> None:
    redis, _, feed = _parts()
    redis.publish_snapshot(make_snapshot())
    await feed.sync()

    await feed.sync()

    assert redis.num_reads_of_versions == 1


async def test_an_empty_redis_confirms_an_authority_that_knows_nobody() -> None:
    _, authority, feed = _parts()

    await feed.sync()

    assert authority.is_fresh()


async def test_a_redis_that_lost_its_memory_confirms_nothing() -> None:
    redis, _, feed = _parts()
    clock = FakeClock()
    authority = SnapshotStore(root_secret=ROOT_SECRET, clock=clock, max_age_s=300)
    feed = SnapshotFeed(cast(Redis, redis), authority)
    redis.publish_snapshot(make_snapshot())
    await feed.sync()

    redis.lose_everything()
    clock.pass_s(301)
    await feed.sync()

    assert not authority.is_fresh()


async def test_a_redis_that_lost_its_memory_takes_nobody_away() -> None:
    redis, authority, feed = _parts()
    redis.publish_snapshot(make_snapshot())
    await feed.sync()

    redis.lose_everything()
    await feed.sync()

    assert authority.versions == {ACME: 1}


class _Noting(SnapshotStore):
    """Records the order of events."""

    events: list[str]
    begun: asyncio.Event

    def replace(self, snapshot: TenantSnapshot) -> None:
        super().replace(snapshot)
        self.events.append("replaced")
        self.begun.set()


async def test_between_two_snapshots_others_have_their_turn() -> None:
    redis = FakeRedis()
    authority = _Noting(root_secret=ROOT_SECRET, clock=FakeClock(), max_age_s=300)
    authority.events, authority.begun = [], asyncio.Event()
    for tenant_id in (ACME, GLOBEX):
        redis.publish_snapshot(make_snapshot(tenant_id=tenant_id))

    async def wait_for_a_turn() -> None:
        await authority.begun.wait()
        authority.events.append("somebody else")

    async with asyncio.TaskGroup() as group:
        group.create_task(wait_for_a_turn())
        group.create_task(SnapshotFeed(cast(Redis, redis), authority).sync())

    assert authority.events == ["replaced", "somebody else", "replaced"]


UNREADABLE = {
    "empty": b"",
    "another type": msgspec.msgpack.encode([1, 2, 3]),
    "a newer schema": msgspec.msgpack.encode(
        {**msgspec.msgpack.decode(encode_snapshot(make_snapshot())), "invented_later": 1}
    ),
    "broken text": b"\x81\xa4slug\xa2\xff\xfe",
}


@pytest.mark.parametrize("damage", UNREADABLE)
async def test_an_unreadable_snapshot_harms_no_neighbour(damage: str) -> None:
    redis, authority, feed = _parts()
    redis.plant(ACME, 7, UNREADABLE[damage])
    redis.publish_snapshot(make_snapshot(tenant_id=GLOBEX))

    await feed.sync()

    assert authority.versions == {GLOBEX: 1}


@pytest.mark.parametrize("damage", UNREADABLE)
async def test_an_unreadable_snapshot_leaves_the_tenant_as_it_was(damage: str) -> None:
    redis, authority, feed = _parts()
    redis.publish_snapshot(make_snapshot(version=3))
    await feed.sync()

    redis.plant(ACME, 4, UNREADABLE[damage])
    await feed.sync()

    assert authority.versions == {ACME: 3}


class _PubSub:
    async def subscribe(self, _channel: str) -> None:
        return

    async def get_message(self, *, timeout: float) -> None:
        await asyncio.sleep(min(timeout, 0.001))


class _ShakyRedis(FakeRedis):
    """Fails this many times before it responds."""

    def __init__(self, *, num_failures: int) -> None:
        super().__init__()
        self.num_failures = num_failures

    async def get(self, key: str) -> bytes | None:
        if self.num_failures:
            self.num_failures -= 1
            raise RedisGone("planted")
        return await super().get(key)

    @asynccontextmanager
    async def pubsub(self, **_options: Any) -> AsyncIterator[_PubSub]:
        yield _PubSub()


async def test_the_feed_outlives_a_redis_that_goes_away() -> None:
    _, authority, _ = _parts()
    redis = _ShakyRedis(num_failures=1)
    redis.publish_snapshot(make_snapshot())

    running = asyncio.create_task(SnapshotFeed(cast(Redis, redis), authority).run())
    try:
        await until(authority.is_fresh)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert authority.versions == {ACME: 1}


async def test_behind_a_relay_nothing_is_confirmed_while_home_is_not_heard() -> None:
    redis, authority, _ = _parts()
    feed = SnapshotFeed(cast(Redis, redis), authority, is_relayed=True)
    redis.publish_snapshot(make_snapshot())

    await feed.sync()
    unheard = authority.is_fresh()
    redis.values[HOME_HEARD] = b"1"
    await feed.sync()

    assert not unheard
    assert authority.is_fresh()
    assert authority.versions == {ACME: 1}

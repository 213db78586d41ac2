"""The feed from Redis to the snapshot store, over a fake Redis.

The tests in `tests/integration` use a real one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisGone

from caret.contracts.snapshot import HOME_LAST_SEEN, TenantSnapshot, encode_snapshot
from inference.gateway.snapshots.snapshot_feed import REPUBLICATION_S, SnapshotFeed
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from tests.fakes.clock import FakeClock
from tests.fakes.polling import wait_until
from tests.fakes.redis import FakeRedis
from tests.fakes.tenants import ACME, GLOBEX, ROOT_SECRET, make_snapshot

MAX_AGE_S = 300.0


def _create_feed(
    *, clock: FakeClock | None = None
) -> tuple[FakeRedis, SnapshotStore, SnapshotFeed]:
    clock = clock or FakeClock()
    snapshot_store = SnapshotStore(root_secret=ROOT_SECRET, clock=clock, max_age_s=MAX_AGE_S)
    redis = FakeRedis()
    return redis, snapshot_store, SnapshotFeed(cast(Redis, redis), snapshot_store, clock=clock)


async def test_a_published_snapshot_is_stored_and_the_store_is_fresh() -> None:
    redis, snapshot_store, feed = _create_feed()
    redis.publish_snapshot(make_snapshot(version=3))

    await feed.sync()

    assert snapshot_store.versions == {ACME: 3}
    assert snapshot_store.is_fresh()


async def test_a_newer_version_replaces_the_older() -> None:
    redis, snapshot_store, feed = _create_feed()
    redis.publish_snapshot(make_snapshot(version=3))
    await feed.sync()

    redis.publish_snapshot(make_snapshot(version=4))
    await feed.sync()

    assert snapshot_store.versions == {ACME: 4}


async def test_versions_are_not_read_again_without_a_change() -> None:
    redis, _, feed = _create_feed()
    redis.publish_snapshot(make_snapshot())
    await feed.sync()

    await feed.sync()

    assert redis.num_reads_of_versions == 1


async def test_an_empty_redis_makes_an_empty_store_fresh() -> None:
    _, snapshot_store, feed = _create_feed()

    await feed.sync()

    assert snapshot_store.is_fresh()


async def test_lost_redis_data_does_not_make_the_store_fresh() -> None:
    clock = FakeClock()
    redis, snapshot_store, feed = _create_feed(clock=clock)
    redis.publish_snapshot(make_snapshot())
    await feed.sync()

    redis.lose_everything()
    await feed.sync()
    clock.pass_s(MAX_AGE_S + 1)
    await feed.sync()

    assert not snapshot_store.is_fresh()


async def test_a_pause_while_lost_snapshots_are_published_again_confirms_nothing() -> None:
    clock = FakeClock()
    redis, snapshot_store, feed = _create_feed(clock=clock)
    for tenant_id in (ACME, GLOBEX):
        redis.publish_snapshot(make_snapshot(tenant_id=tenant_id))
    await feed.sync()

    redis.lose_everything()
    clock.pass_s(MAX_AGE_S + 1)
    redis.publish_snapshot(make_snapshot(tenant_id=GLOBEX))
    await feed.sync()
    clock.pass_s(REPUBLICATION_S - 1)
    await feed.sync()
    was_fresh_during_pause = snapshot_store.is_fresh()
    redis.publish_snapshot(make_snapshot(version=2))
    await feed.sync()

    assert not was_fresh_during_pause
    assert snapshot_store.is_fresh()


async def test_a_tenant_that_stays_missing_does_not_make_the_store_stale() -> None:
    clock = FakeClock()
    redis, snapshot_store, feed = _create_feed(clock=clock)
    redis.publish_snapshot(make_snapshot())
    await feed.sync()
    redis.lose_everything()
    clock.pass_s(MAX_AGE_S + 1)
    await feed.sync()

    freshness = []
    for version in range(3):  # other tenants keep changing
        redis.publish_snapshot(make_snapshot(tenant_id=GLOBEX, version=version))
        await feed.sync()
        freshness.append(snapshot_store.is_fresh())
        clock.pass_s(REPUBLICATION_S + 1)

    assert freshness == [False, True, True]


async def test_the_time_of_an_outage_of_redis_does_not_count_as_missing() -> None:
    clock = FakeClock()
    redis, snapshot_store, feed = _create_feed(clock=clock)
    redis.publish_snapshot(make_snapshot())
    await feed.sync()
    redis.lose_everything()
    await feed.sync()
    redis.publish_snapshot(make_snapshot(tenant_id=GLOBEX))
    await feed.sync()

    feed.on_redis_unreachable(RedisGone("planted"))
    clock.pass_s(MAX_AGE_S + 1)
    await feed.sync()

    assert not snapshot_store.is_fresh()


async def test_lost_redis_data_removes_no_tenant() -> None:
    redis, snapshot_store, feed = _create_feed()
    redis.publish_snapshot(make_snapshot())
    await feed.sync()

    redis.lose_everything()
    await feed.sync()

    assert snapshot_store.versions == {ACME: 1}


class _RecordingStore(SnapshotStore):
    """Records the order of events."""

    events: list[str]
    has_begun: asyncio.Event

    def replace(self, snapshot: TenantSnapshot) -> None:
        super().replace(snapshot)
        self.events.append("replaced")
        self.has_begun.set()


async def test_other_tasks_run_between_two_snapshots() -> None:
    redis = FakeRedis()
    clock = FakeClock()
    snapshot_store = _RecordingStore(root_secret=ROOT_SECRET, clock=clock, max_age_s=MAX_AGE_S)
    snapshot_store.events, snapshot_store.has_begun = [], asyncio.Event()
    for tenant_id in (ACME, GLOBEX):
        redis.publish_snapshot(make_snapshot(tenant_id=tenant_id))

    async def run_between() -> None:
        await snapshot_store.has_begun.wait()
        snapshot_store.events.append("another task")

    async with asyncio.TaskGroup() as group:
        group.create_task(run_between())
        group.create_task(SnapshotFeed(cast(Redis, redis), snapshot_store, clock=clock).sync())

    assert snapshot_store.events == ["replaced", "another task", "replaced"]


UNREADABLE = {
    "empty": b"",
    "another type": msgspec.msgpack.encode([1, 2, 3]),
    "a newer schema": msgspec.msgpack.encode(
        {**msgspec.msgpack.decode(encode_snapshot(make_snapshot())), "invented_later": 1}
    ),
    "broken text": b"\x81\xa4slug\xa2\xff\xfe",  # {"slug": two bytes that are not UTF-8}
}


@pytest.mark.parametrize("damage", UNREADABLE)
async def test_an_unreadable_snapshot_does_not_affect_other_tenants(damage: str) -> None:
    redis, snapshot_store, feed = _create_feed()
    redis.publish_bytes(ACME, 7, UNREADABLE[damage])
    redis.publish_snapshot(make_snapshot(tenant_id=GLOBEX))

    await feed.sync()

    assert snapshot_store.versions == {GLOBEX: 1}


@pytest.mark.parametrize("damage", UNREADABLE)
async def test_an_unreadable_snapshot_keeps_the_previous_one(damage: str) -> None:
    redis, snapshot_store, feed = _create_feed()
    redis.publish_snapshot(make_snapshot(version=3))
    await feed.sync()

    redis.publish_bytes(ACME, 4, UNREADABLE[damage])
    await feed.sync()

    assert snapshot_store.versions == {ACME: 3}


class _PubSub:
    """A subscription without messages."""

    async def subscribe(self, _channel: str) -> None:
        return

    async def get_message(self, *, timeout: float) -> None:
        await asyncio.sleep(min(timeout, 0.001))


class _FlakyRedis(FakeRedis):
    """Fails `num_failures` times before it responds."""

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


async def test_the_feed_continues_after_redis_was_unreachable() -> None:
    _, snapshot_store, _ = _create_feed()
    redis = _FlakyRedis(num_failures=1)
    redis.publish_snapshot(make_snapshot())

    running = asyncio.create_task(
        SnapshotFeed(cast(Redis, redis), snapshot_store, clock=FakeClock()).run()
    )
    try:
        await wait_until(snapshot_store.is_fresh)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert snapshot_store.versions == {ACME: 1}


async def test_behind_a_relay_the_store_is_stale_without_the_home_region() -> None:
    redis, snapshot_store, _ = _create_feed()
    feed = SnapshotFeed(cast(Redis, redis), snapshot_store, clock=FakeClock(), is_relayed=True)
    redis.publish_snapshot(make_snapshot())

    await feed.sync()
    was_fresh = snapshot_store.is_fresh()
    redis.values[HOME_LAST_SEEN] = b"1"  # the relay has reached the home region
    await feed.sync()

    assert not was_fresh
    assert snapshot_store.is_fresh()
    assert snapshot_store.versions == {ACME: 1}

"""The feed of drained replicas, over a fake Redis (`tests/integration/gateway` uses the real
one)."""

from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisGone

from inference.pools.discovery.fleet_state_feed import DrainFeed
from inference.pools.health.replica_states import ReplicaStates
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool
from tests.fakes.redis import FakeRedis

ONE, TWO = make_pool("http://one:1", "http://two:1").replicas


class _UnreachableRedis(FakeRedis):
    async def get(self, key: str) -> bytes | None:
        raise RedisGone("planted")


def _create_feed(redis: FakeRedis | None = None) -> tuple[FakeRedis, ReplicaStates, DrainFeed]:
    redis, replicas = redis or FakeRedis(), ReplicaStates(FakeClock())
    return redis, replicas, DrainFeed(cast(Redis, redis), replicas)


async def test_draining_starts_and_ends_with_the_list_in_redis() -> None:
    redis, replicas, feed = _create_feed()

    redis.drain("one:1")
    await feed.sync()
    drained = (replicas.is_drained(ONE), replicas.is_drained(TWO))
    redis.drain()
    await feed.sync()

    assert drained == (True, False)
    assert not replicas.is_drained(ONE)


async def test_draining_is_known_before_the_first_request() -> None:
    redis, replicas, feed = _create_feed()
    redis.drain("two:1")

    await feed.start()

    assert replicas.is_drained(TWO)


async def test_replicas_stay_drained_when_redis_loses_its_data() -> None:
    redis, replicas, feed = _create_feed()
    redis.drain("one:1")
    await feed.sync()

    redis.lose_everything()
    await feed.sync()

    assert replicas.is_drained(ONE)


async def test_versions_start_again_after_redis_lost_its_data() -> None:
    redis, replicas, feed = _create_feed()
    redis.drain("one:1")
    await feed.sync()
    redis.lose_everything()
    await feed.sync()

    redis.drain("two:1")  # version 1 again, which was already seen
    await feed.sync()

    assert replicas.is_drained(TWO)


async def test_a_gateway_starts_without_redis() -> None:
    _, replicas, feed = _create_feed(_UnreachableRedis())

    await feed.start()

    assert not replicas.is_drained(ONE)

"""The feed of drained replicas, over a fake Redis (`tests/integration/gateway` uses the real
one)."""

from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisGone

from inference.pools.discovery.drain_feed import DrainFeed
from inference.pools.health.replica_states import ReplicaStates
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool
from tests.fakes.redis import FakeRedis

ONE, TWO = make_pool("http://one:1", "http://two:1").replicas


class _AwayRedis(FakeRedis):
    async def get(self, key: str) -> bytes | None:
        raise RedisGone("planted")


def _parts(redis: FakeRedis | None = None) -> tuple[FakeRedis, ReplicaStates, DrainFeed]:
    redis, replicas = redis or FakeRedis(), ReplicaStates(FakeClock())
    return redis, replicas, DrainFeed(cast(Redis, redis), replicas)


async def test_what_is_drained_is_taken_in_and_given_back() -> None:
    redis, replicas, feed = _parts()

    redis.drain("one:1")
    await feed.sync()
    drained = (replicas.is_drained(ONE), replicas.is_drained(TWO))
    redis.drain()
    await feed.sync()

    assert drained == (True, False)
    assert not replicas.is_drained(ONE)


async def test_a_gateway_that_starts_knows_before_it_asks_anybody() -> None:
    redis, replicas, feed = _parts()
    redis.drain("two:1")

    await feed.start()

    assert replicas.is_drained(TWO)


async def test_a_redis_that_lost_its_memory_returns_nothing() -> None:
    redis, replicas, feed = _parts()
    redis.drain("one:1")
    await feed.sync()

    redis.lose_everything()
    await feed.sync()

    assert replicas.is_drained(ONE)


async def test_a_redis_that_lost_its_memory_counts_anew() -> None:
    redis, replicas, feed = _parts()
    redis.drain("one:1")
    await feed.sync()
    redis.lose_everything()
    await feed.sync()

    redis.drain("two:1")  # version 1 again, which was already seen
    await feed.sync()

    assert replicas.is_drained(TWO)


async def test_a_redis_that_is_away_lets_a_gateway_start() -> None:
    _, replicas, feed = _parts(_AwayRedis())

    await feed.start()

    assert not replicas.is_drained(ONE)

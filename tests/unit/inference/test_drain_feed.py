"""The feed of drained replicas, over a fake Redis.

`tests/integration/gateway` uses the real one.
"""

from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from inference.pools.discovery.fleet_state_feed import DrainFeed
from inference.pools.health.replica_states import ReplicaStates
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool
from tests.fakes.redis import FakeRedis

ONE, TWO = make_pool("http://one:1", "http://two:1").replicas


class _UnreachableRedis(FakeRedis):
    async def get(self, key: str) -> bytes | None:
        raise RedisConnectionError("unreachable")


def _create_feed(redis: FakeRedis | None = None) -> tuple[FakeRedis, ReplicaStates, DrainFeed]:
    redis, replicas = redis or FakeRedis(), ReplicaStates(FakeClock())
    return redis, replicas, DrainFeed(cast(Redis, redis), replicas)


async def test_the_drained_replicas_are_those_in_redis() -> None:
    redis, replicas, feed = _create_feed()

    redis.drain("one:1")
    await feed.sync()
    assert (replicas.is_drained(ONE), replicas.is_drained(TWO)) == (True, False)

    redis.drain()  # sets the drained replicas to exactly these: none
    await feed.sync()
    assert not replicas.is_drained(ONE)


async def test_drained_replicas_are_known_when_the_feed_has_started() -> None:
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


async def test_a_repeated_version_is_read_after_redis_has_lost_its_data() -> None:
    redis, replicas, feed = _create_feed()
    redis.drain("one:1")
    await feed.sync()
    redis.lose_everything()
    await feed.sync()

    redis.drain("two:1")  # version 1 again, which the feed has seen already
    await feed.sync()

    assert replicas.is_drained(TWO)


async def test_the_feed_starts_without_drained_replicas_if_redis_is_unreachable() -> None:
    _, replicas, feed = _create_feed(_UnreachableRedis())

    await feed.start()

    assert not replicas.is_drained(ONE)

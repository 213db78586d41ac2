"""The feed of added replicas, over a fake Redis (`tests/integration/gateway` uses the real one)."""

from dataclasses import replace
from typing import Any, cast

import msgspec
import pytest
from redis.asyncio import Redis

from caret.contracts.added_replicas import ReplicaChange, encode_addition
from caret.contracts.policy import Tier
from inference.pools.cache_isolation import SpeculationMethod
from inference.pools.discovery.added_replica_feed import AdditionFeed
from tests.fakes.pool_members import Fleet, identity
from tests.fakes.pools import make_pool
from tests.fakes.redis import FakeRedis

ONE, TWO = "10.0.0.1:8000", "10.0.0.2:8000"
ADDITION = ReplicaChange(
    schema=1,
    pool="demo-fast",
    url=f"http://{TWO}",
    is_added=True,
    operator="ola",
    reason="Ticket 4711",
    at_ms=1,
)


def _parts() -> tuple[FakeRedis, Fleet, AdditionFeed]:
    pool = replace(make_pool(f"http://{ONE}"), allowed_replica_hosts=("10.0.0.0/24",))
    fleet, redis = Fleet((pool, make_pool(tier=Tier.QUALITY))), FakeRedis()
    fleet.network.said = {name: identity() for name in (ONE, TWO)}
    return redis, fleet, AdditionFeed(cast(Redis, redis), fleet.membership)


async def _take(feed: AdditionFeed, fleet: Fleet) -> None:
    await feed.sync()
    await fleet.membership.reconcile(asks_everybody=False)


def _said(**fields: Any) -> bytes:
    return encode_addition(msgspec.structs.replace(ADDITION, **fields))


async def test_what_is_added_joins_and_leaves() -> None:
    redis, fleet, feed = _parts()

    redis.add(two=_said())
    await _take(feed, fleet)
    joined = sorted(fleet.names())
    redis.add()
    await _take(feed, fleet)

    assert joined == [ONE, TWO]
    assert fleet.names() == [ONE]


async def test_what_is_said_of_it_is_kept() -> None:
    redis, fleet, feed = _parts()

    redis.add(two=_said(kv_events="tcp://10.0.0.2:5557", speculation="ngram"))
    await _take(feed, fleet)

    (added,) = [each for each in fleet.catalog.by_name["demo-fast"].replicas if each.name == TWO]
    assert (added.kv_events, added.speculation) == ("tcp://10.0.0.2:5557", SpeculationMethod.NGRAM)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\xff",
        _said(schema=2),
        _said(url="ftp://10.0.0.3"),
        _said(url="http://["),
        _said(speculation="suffix"),
        _said(speculation="magic"),
        _said(kv_events="tcp://10.0.0.2"),
        _said(pool="nobody's"),
    ],
)
async def test_what_cannot_be_read_leaves_the_others(bad: bytes) -> None:
    redis, fleet, feed = _parts()

    redis.add(bad=bad, two=_said())
    await _take(feed, fleet)

    assert sorted(fleet.names()) == [ONE, TWO]


async def test_a_redis_that_lost_its_memory_takes_nothing_away() -> None:
    redis, fleet, feed = _parts()
    redis.add(two=_said())
    await _take(feed, fleet)

    redis.lose_everything()
    await _take(feed, fleet)

    assert sorted(fleet.names()) == [ONE, TWO]


async def test_fields_of_a_newer_version_are_passed_over() -> None:
    redis, fleet, feed = _parts()
    newer = msgspec.msgpack.decode(_said()) | {"weight": 3}

    redis.add(two=msgspec.msgpack.encode(newer))
    await _take(feed, fleet)

    assert sorted(fleet.names()) == [ONE, TWO]

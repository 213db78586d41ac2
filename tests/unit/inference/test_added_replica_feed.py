"""The feed of added replicas, over a fake Redis (`tests/integration/gateway` uses the real one)."""

from dataclasses import replace
from typing import Any, cast

import msgspec
import pytest
from redis.asyncio import Redis

from caret.contracts.added_replicas import ReplicaChange, encode_replica_change
from caret.contracts.policy import Tier
from inference.pools.cache_isolation import SpeculationMethod
from inference.pools.discovery.fleet_state_feed import AddedReplicaFeed
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


def _create_feed() -> tuple[FakeRedis, Fleet, AddedReplicaFeed]:
    pool = replace(make_pool(f"http://{ONE}"), allowed_replica_hosts=("10.0.0.0/24",))
    fleet, redis = Fleet((pool, make_pool(tier=Tier.QUALITY))), FakeRedis()
    fleet.network.identities = {name: identity() for name in (ONE, TWO)}
    return redis, fleet, AddedReplicaFeed(cast(Redis, redis), fleet.pool_members)


async def _sync(feed: AddedReplicaFeed, fleet: Fleet) -> None:
    """Read Redis, and let the pools take over the changes."""
    await feed.sync()
    await fleet.pool_members.reconcile(checks_all=False)


def _encode_addition(**fields: Any) -> bytes:
    """Return ADDITION with these fields replaced, as it is stored in Redis."""
    return encode_replica_change(msgspec.structs.replace(ADDITION, **fields))


async def test_an_added_replica_joins_its_pool_and_leaves_it_when_its_entry_is_removed() -> None:
    redis, fleet, feed = _create_feed()

    redis.add(two=_encode_addition())
    await _sync(feed, fleet)
    assert sorted(fleet.names()) == [ONE, TWO]

    redis.add()  # sets the added replicas to exactly these: none
    await _sync(feed, fleet)
    assert fleet.names() == [ONE]


async def test_the_fields_of_an_added_replica_reach_the_pool() -> None:
    redis, fleet, feed = _create_feed()

    redis.add(two=_encode_addition(kv_events="tcp://10.0.0.2:5557", speculation="ngram"))
    await _sync(feed, fleet)

    (added,) = [
        replica for replica in fleet.catalog.by_name["demo-fast"].replicas if replica.name == TWO
    ]
    assert (added.kv_events, added.speculation) == ("tcp://10.0.0.2:5557", SpeculationMethod.NGRAM)


@pytest.mark.parametrize(
    "invalid_entry",
    [
        b"",
        b"\xff",
        _encode_addition(schema=2),
        _encode_addition(url="ftp://10.0.0.3"),
        _encode_addition(url="http://["),
        _encode_addition(speculation="suffix"),  # only replicas in the pools file may have it
        _encode_addition(speculation="magic"),
        _encode_addition(kv_events="tcp://10.0.0.2"),  # without a port
        _encode_addition(pool="nobody's"),
    ],
)
async def test_an_invalid_entry_does_not_affect_the_others(invalid_entry: bytes) -> None:
    redis, fleet, feed = _create_feed()

    redis.add(bad=invalid_entry, two=_encode_addition())
    await _sync(feed, fleet)

    assert sorted(fleet.names()) == [ONE, TWO]


async def test_added_replicas_stay_when_redis_loses_its_data() -> None:
    redis, fleet, feed = _create_feed()
    redis.add(two=_encode_addition())
    await _sync(feed, fleet)

    redis.lose_everything()
    await _sync(feed, fleet)

    assert sorted(fleet.names()) == [ONE, TWO]


async def test_fields_of_a_newer_version_are_ignored() -> None:
    redis, fleet, feed = _create_feed()
    newer = msgspec.msgpack.decode(_encode_addition()) | {"weight": 3}

    redis.add(two=msgspec.msgpack.encode(newer))
    await _sync(feed, fleet)

    assert sorted(fleet.names()) == [ONE, TWO]

"""Consistent hashing with bounded load: the ranking of a pool's replicas for a routing key.

In these tests, a key is always a routing key.
"""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from inference.pools.pool_config import Replica
from inference.routing.consistent_hashing import (
    CAPACITY,
    MIN_CAPACITY,
    filter_with_capacity,
    rank_by_hash,
)
from tests.fakes.pools import make_pool

REPLICAS = make_pool(*(f"http://engine-{n}:1" for n in range(4))).replicas
KEYS = [f"key-{n}" for n in range(400)]


def test_keys_are_spread_evenly() -> None:
    counts = Counter(rank_by_hash(key, REPLICAS)[0].name for key in KEYS)

    assert len(counts) == len(REPLICAS)
    assert max(counts.values()) < 140  # 100 on average: 400 keys for four replicas


def test_removing_a_replica_keeps_the_order_of_the_others() -> None:
    removed, *others = REPLICAS

    for key in KEYS:
        expected = [replica for replica in rank_by_hash(key, REPLICAS) if replica is not removed]
        assert rank_by_hash(key, others) == expected


def test_the_keys_of_a_removed_replica_are_spread_over_all_others() -> None:
    removed, *others = REPLICAS
    keys_of_removed = [key for key in KEYS if rank_by_hash(key, REPLICAS)[0] is removed]

    successors = {rank_by_hash(key, others)[0].name for key in keys_of_removed}

    assert len(successors) == len(REPLICAS) - 1


@given(st.lists(st.integers(0, 500), min_size=1, max_size=4))
def test_at_least_one_replica_has_room_and_none_exceeds_its_capacity(loads: list[int]) -> None:
    load_of = dict(zip(REPLICAS, loads, strict=False))

    replicas_with_room = filter_with_capacity(list(load_of), load_of.__getitem__)

    mean_load = (sum(loads) + 1) / len(loads)  # with one more request
    max_load = max(MIN_CAPACITY, CAPACITY * mean_load + 1)  # 1 because the capacity is rounded up
    assert replicas_with_room
    assert all(load_of[replica] + 1 <= max_load for replica in replicas_with_room)


def test_under_light_load_all_replicas_have_room() -> None:
    load_of = dict(zip(REPLICAS, (MIN_CAPACITY - 1, 0, 0, 0), strict=True))

    assert filter_with_capacity(REPLICAS, load_of.__getitem__) == REPLICAS


def test_a_full_replica_is_replaced_by_the_next_one_for_the_key() -> None:
    ranked = rank_by_hash("a key", REPLICAS)
    load_of: dict[Replica, int] = dict.fromkeys(REPLICAS, 10)
    load_of[ranked[0]] = 40

    assert filter_with_capacity(ranked, load_of.__getitem__)[0] is ranked[1]

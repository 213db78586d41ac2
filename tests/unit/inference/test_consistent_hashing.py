"""Consistent hashing with bounded load ranks a pool's replicas for a routing key."""

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
    assert max(counts.values()) < 140  # 100 on average


def test_removing_a_replica_keeps_the_order_of_the_others() -> None:
    for key in KEYS:
        others = [replica for replica in rank_by_hash(key, REPLICAS) if replica is not REPLICAS[0]]

        assert rank_by_hash(key, REPLICAS[1:]) == others


def test_the_keys_of_a_lost_replica_are_spread_over_all_others() -> None:
    lost = [key for key in KEYS if rank_by_hash(key, REPLICAS)[0] is REPLICAS[0]]

    successors = {rank_by_hash(key, REPLICAS[1:])[0].name for key in lost}

    assert len(successors) == len(REPLICAS) - 1


@given(st.lists(st.integers(0, 500), min_size=1, max_size=4))
def test_at_least_one_replica_has_room_and_none_exceeds_its_capacity(loads: list[int]) -> None:
    load_of = dict(zip(REPLICAS, loads, strict=False))

    chosen_replicas = filter_with_capacity(list(load_of), load_of.__getitem__)

    mean = (sum(loads) + 1) / len(loads)  # with one more request
    assert chosen_replicas
    assert all(
        load_of[replica] + 1 <= max(MIN_CAPACITY, CAPACITY * mean + 1)
        for replica in chosen_replicas
    )


def test_under_light_load_all_replicas_have_room() -> None:
    load_of = dict(zip(REPLICAS, (MIN_CAPACITY - 1, 0, 0, 0), strict=True))

    assert filter_with_capacity(REPLICAS, load_of.__getitem__) == REPLICAS


def test_a_full_replica_is_replaced_by_the_next_one_for_the_key() -> None:
    load_of: dict[Replica, int] = dict.fromkeys(REPLICAS, 10)
    first, second, *_ = ranked = rank_by_hash("a key", REPLICAS)
    load_of[first] = 40

    assert filter_with_capacity(ranked, load_of.__getitem__)[0] is second

"""Leases: few calls to the store, never more than the rate, and operation without the store."""

import asyncio
from dataclasses import replace

import pytest

from inference.gateway.rate_limits.leased_bucket import IDLE_S
from inference.gateway.rate_limits.leases import PROBE_S, SpendRequest
from tests.fakes.clock import FakeClock
from tests.fakes.leasing import BUDGET, RULE, TENANTS, Gateway, TurnedStore


@pytest.fixture
def store() -> TurnedStore:
    return TurnedStore(FakeClock())


@pytest.fixture
def gateway(store: TurnedStore) -> Gateway:
    return Gateway(store)


async def test_a_lease_serves_many_requests(store: TurnedStore, gateway: Gateway) -> None:
    assert await gateway.spends_many(SpendRequest(RULE, 1), 60) == 60

    assert store.num_calls <= 7


async def test_the_buckets_of_a_request_are_asked_about_in_one_call(
    store: TurnedStore, gateway: Gateway
) -> None:
    await gateway.spends(SpendRequest(TENANTS, 1), SpendRequest(RULE, 1), SpendRequest(BUDGET, 1))

    assert [len(call) for call in store.calls] == [3]


async def test_no_more_than_the_capacity_is_let_through_at_once(gateway: Gateway) -> None:
    assert await gateway.spends_many(SpendRequest(RULE, 1), 300) == 100


async def test_two_gateways_share_a_limit(store: TurnedStore) -> None:
    here, there = Gateway(store), Gateway(store)

    let_through = [
        await gateway.spends_many(SpendRequest(RULE, 1), 150) for gateway in (here, there)
    ]

    assert sum(let_through) == 100


async def test_the_refused_are_told_when_a_unit_is_back(
    store: TurnedStore, gateway: Gateway
) -> None:
    await gateway.spends_many(SpendRequest(RULE, 1), 100)

    wait_s = await gateway.spends(SpendRequest(RULE, 5))
    store.clock.pass_s(wait_s + 0.001)

    assert wait_s == pytest.approx(0.5)
    assert await gateway.spends(SpendRequest(RULE, 5)) == 0.0


async def test_who_hammers_costs_the_store_nothing(store: TurnedStore, gateway: Gateway) -> None:
    await gateway.spends_many(SpendRequest(RULE, 1), 101)
    before = store.num_calls

    await gateway.spends_many(SpendRequest(RULE, 1), 1_000)

    assert store.num_calls == before


async def test_a_request_that_one_bucket_refuses_spends_nothing_of_the_others(
    store: TurnedStore, gateway: Gateway
) -> None:
    await gateway.spends_many(SpendRequest(RULE, 1), 100)

    refused = [
        await gateway.spends(SpendRequest(TENANTS, 1), SpendRequest(RULE, 1)) for _ in range(1_500)
    ]
    let_through = await gateway.spends_many(SpendRequest(TENANTS, 1), 1_500)

    assert all(refused)
    assert let_through == 1_000


async def test_many_at_once_wait_for_one_call(store: TurnedStore, gateway: Gateway) -> None:
    await asyncio.gather(*(gateway.leases.spend([SpendRequest(RULE, 1)]) for _ in range(50)))

    assert store.num_calls <= 3


async def test_what_is_given_back_may_be_spent_again(gateway: Gateway) -> None:
    (spent,) = await gateway.leases.spend([SpendRequest(RULE, 50)])
    await gateway.spends_many(SpendRequest(RULE, 1), 50)

    gateway.leases.settle(spent, 10)

    assert await gateway.spends_many(SpendRequest(RULE, 1), 50) == 40


async def test_what_lies_unused_is_given_back_to_the_others(store: TurnedStore) -> None:
    here, there = Gateway(store), Gateway(store)
    await here.spends(SpendRequest(BUDGET, 1))
    store.clock.pass_s(IDLE_S + 1)

    await here.leases.evict_idle()

    assert await there.spends_many(SpendRequest(BUDGET, 1), 150) == 99


async def test_a_gateway_that_closes_gives_all_back(store: TurnedStore) -> None:
    here, there = Gateway(store), Gateway(store)
    await here.spends(SpendRequest(BUDGET, 1))

    await here.leases.close()

    assert await there.spends_many(SpendRequest(BUDGET, 1), 150) == 99


async def test_a_gateway_that_closes_beside_a_call_that_has_not_begun_gives_all_back(
    store: TurnedStore,
) -> None:
    here, there = Gateway(store), Gateway(store)
    await here.spends(SpendRequest(BUDGET, 1))
    # One unit more than the lease has, so that a call is prepared; it runs in the next iteration.
    renewing = asyncio.ensure_future(here.leases.spend([SpendRequest(BUDGET, 99)]))
    await asyncio.sleep(0)
    renewing.cancel()

    await here.leases.close()

    assert await there.spends_many(SpendRequest(BUDGET, 1), 150) == 99


async def test_while_the_store_is_away_the_rate_holds_on_each_gateway(
    store: TurnedStore, gateway: Gateway
) -> None:
    store.is_away = True

    let_through = await gateway.spends_many(SpendRequest(RULE, 1), 300)
    store.clock.pass_s(1.0)

    assert let_through == 100
    assert await gateway.spends_many(SpendRequest(RULE, 1), 300) == 10


async def test_a_lease_is_spent_although_the_store_is_away(
    store: TurnedStore, gateway: Gateway
) -> None:
    await gateway.spends(SpendRequest(RULE, 1))
    store.is_away = True

    assert await gateway.spends_many(SpendRequest(RULE, 1), 9) == 9


async def test_what_was_spent_without_the_store_is_no_gift_when_it_is_given_back(
    store: TurnedStore, gateway: Gateway
) -> None:
    store.is_away = True

    for _ in range(91):
        (spent,) = await gateway.leases.spend([SpendRequest(RULE, 10)])
        gateway.leases.settle(spent, 1)

    assert await gateway.spends(SpendRequest(RULE, 10)) > 0


async def test_a_store_that_is_away_is_not_asked_by_every_request(
    store: TurnedStore, gateway: Gateway
) -> None:
    store.is_away = True

    await gateway.spends_many(SpendRequest(RULE, 1), 90)

    assert store.num_calls <= 2


async def test_nobody_waits_long_for_a_store_that_hangs(
    store: TurnedStore, gateway: Gateway
) -> None:
    store.hangs = True

    async with asyncio.timeout(2.0):
        assert await gateway.spends_many(SpendRequest(RULE, 1), 20) == 20
    await gateway.leases.close()


async def test_a_store_that_is_back_is_believed_again(store: TurnedStore, gateway: Gateway) -> None:
    store.is_away = True
    await gateway.spends(SpendRequest(RULE, 1))
    store.is_away = False
    store.clock.pass_s(PROBE_S)

    await gateway.spends(SpendRequest(RULE, 1))

    assert not gateway.leases.is_store_unavailable


async def test_what_a_budget_lost_while_the_store_was_away_is_booked_afterwards(
    store: TurnedStore, gateway: Gateway
) -> None:
    store.is_away = True
    await gateway.spends(SpendRequest(BUDGET, 60))
    store.is_away = False
    store.clock.pass_s(PROBE_S)
    await gateway.spends(SpendRequest(BUDGET, 1))

    await gateway.leases.close()
    assert store.pools[BUDGET.key].used == 61


async def test_what_a_rate_let_through_without_the_store_is_not_booked_afterwards(
    store: TurnedStore, gateway: Gateway
) -> None:
    store.is_away = True
    await gateway.spends_many(SpendRequest(RULE, 1), 100)
    store.is_away = False
    store.clock.pass_s(PROBE_S)
    await gateway.spends(SpendRequest(RULE, 1))

    # Units have returned by themselves meanwhile, however long the store was down.
    assert await gateway.spends_many(SpendRequest(RULE, 1), 50) == 50


async def test_a_crowd_of_keys_takes_bounded_memory_and_gives_its_leases_back(
    store: TurnedStore,
) -> None:
    gateway = Gateway(store, max_buckets=50)
    rules = [
        replace(BUDGET, key=f"caret:token-quota:{{acme}}:{number}") for number in range(10_000)
    ]

    for rule in rules:
        await gateway.spends(SpendRequest(rule, 1))
    await gateway.leases.close()

    assert gateway.leases.num_buckets == 0
    assert {pool.used for pool in store.pools.values()} == {1}


async def test_a_limit_that_is_lowered_counts_at_once(gateway: Gateway) -> None:
    await gateway.spends(SpendRequest(RULE, 1))
    lower = replace(RULE, capacity=3, max_lease=1, lease=1)

    assert await gateway.spends_many(SpendRequest(lower, 1), 50) <= 3


async def test_who_leaves_while_it_waits_has_spent_nothing(
    store: TurnedStore, gateway: Gateway
) -> None:
    leaving = asyncio.create_task(gateway.leases.spend([SpendRequest(BUDGET, 60)]))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    await gateway.settles()

    await gateway.leases.close()

    assert store.pools[BUDGET.key].used == 0

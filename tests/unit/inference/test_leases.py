"""Leases of rate-limit units need few calls to the store, keep the rate and work without the store.

USER_BUCKET (a rate) and TOKEN_QUOTA have a capacity of 100 units, TENANT_BUCKET (a rate) of 1,000.
Their leases have about ten units. The rates give back ten units a second.
`try_to_spend` returns 0.0 if it has spent the units. If not, it returns the seconds to wait.
`spend_repeatedly` returns how many of its requests were allowed.
"""

import asyncio
from dataclasses import replace

import pytest

from inference.gateway.rate_limits.leased_bucket import IDLE_S
from inference.gateway.rate_limits.leases import PROBE_S, SpendRequest
from tests.fakes.clock import FakeClock
from tests.fakes.leasing import (
    TENANT_BUCKET,
    TOKEN_QUOTA,
    USER_BUCKET,
    Gateway,
    ManualClockLeaseStore,
)


@pytest.fixture
def store() -> ManualClockLeaseStore:
    return ManualClockLeaseStore(FakeClock())


@pytest.fixture
def gateway(store: ManualClockLeaseStore) -> Gateway:
    return Gateway(store)


async def test_a_lease_serves_many_requests(store: ManualClockLeaseStore, gateway: Gateway) -> None:
    assert await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 60) == 60

    assert store.num_calls <= 7  # one for every ten units, and one more


async def test_the_buckets_of_a_request_are_renewed_in_one_call(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    await gateway.try_to_spend(
        SpendRequest(TENANT_BUCKET, 1), SpendRequest(USER_BUCKET, 1), SpendRequest(TOKEN_QUOTA, 1)
    )

    assert [len(call) for call in store.calls] == [3]


async def test_at_most_the_capacity_is_allowed_at_once(gateway: Gateway) -> None:
    assert await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 300) == 100


async def test_two_gateways_share_a_limit(store: ManualClockLeaseStore) -> None:
    first_gateway, other_gateway = Gateway(store), Gateway(store)

    allowed = [
        await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 150)
        for gateway in (first_gateway, other_gateway)
    ]

    assert sum(allowed) == 100


async def test_a_rejection_contains_the_time_until_units_are_available(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 100)

    wait_s = await gateway.try_to_spend(SpendRequest(USER_BUCKET, 5))
    store.clock.pass_s(wait_s + 0.001)

    assert wait_s == pytest.approx(0.5)
    assert await gateway.try_to_spend(SpendRequest(USER_BUCKET, 5)) == 0.0


async def test_repeated_rejected_requests_cause_no_store_calls(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 101)
    num_calls_before = store.num_calls

    await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 1_000)

    assert store.num_calls == num_calls_before


async def test_a_request_rejected_by_one_bucket_spends_nothing_of_the_others(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 100)

    rejected = [
        await gateway.try_to_spend(SpendRequest(TENANT_BUCKET, 1), SpendRequest(USER_BUCKET, 1))
        for _ in range(1_500)
    ]
    allowed = await gateway.spend_repeatedly(SpendRequest(TENANT_BUCKET, 1), 1_500)

    assert all(rejected)
    assert allowed == 1_000


async def test_concurrent_requests_share_calls(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    await asyncio.gather(*(gateway.leases.spend([SpendRequest(USER_BUCKET, 1)]) for _ in range(50)))

    assert store.num_calls <= 3  # for 50 requests


async def test_refunded_units_may_be_spent_again(gateway: Gateway) -> None:
    (charge,) = await gateway.leases.spend([SpendRequest(USER_BUCKET, 50)])
    await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 50)

    gateway.leases.settle(charge, 10)

    assert await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 50) == 40


async def test_unused_units_are_returned_to_other_gateways(store: ManualClockLeaseStore) -> None:
    gateway, other_gateway = Gateway(store), Gateway(store)
    await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 1))
    store.clock.pass_s(IDLE_S + 1)

    await gateway.leases.evict_idle()

    assert await other_gateway.spend_repeatedly(SpendRequest(TOKEN_QUOTA, 1), 150) == 99


async def test_a_closing_gateway_returns_all_units(store: ManualClockLeaseStore) -> None:
    gateway, other_gateway = Gateway(store), Gateway(store)
    await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 1))

    await gateway.leases.close()

    assert await other_gateway.spend_repeatedly(SpendRequest(TOKEN_QUOTA, 1), 150) == 99


async def test_a_gateway_closing_before_a_pending_call_returns_all_units(
    store: ManualClockLeaseStore,
) -> None:
    gateway, other_gateway = Gateway(store), Gateway(store)
    await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 1))
    # The lease has too few units, so a call to the store is prepared. It would be sent in the
    # next iteration of the event loop.
    task = asyncio.ensure_future(gateway.leases.spend([SpendRequest(TOKEN_QUOTA, 99)]))
    await asyncio.sleep(0)
    task.cancel()

    await gateway.leases.close()

    assert await other_gateway.spend_repeatedly(SpendRequest(TOKEN_QUOTA, 1), 150) == 99


async def test_each_gateway_keeps_the_rate_while_the_store_is_unreachable(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    store.is_unavailable = True

    allowed = await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 300)
    store.clock.pass_s(1.0)

    assert allowed == 100
    assert await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 300) == 10


async def test_a_lease_is_spent_while_the_store_is_unreachable(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    await gateway.try_to_spend(SpendRequest(USER_BUCKET, 1))
    store.is_unavailable = True

    assert await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 9) == 9


async def test_refunds_of_units_spent_without_the_store_enlarge_no_lease(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    store.is_unavailable = True

    # Each of these requests costs one of the 100 units. So nine units remain, fewer than the ten of
    # the next request.
    for _ in range(91):
        (charge,) = await gateway.leases.spend([SpendRequest(USER_BUCKET, 10)])
        gateway.leases.settle(charge, 1)

    assert await gateway.try_to_spend(SpendRequest(USER_BUCKET, 10)) > 0


async def test_an_unreachable_store_is_not_called_for_every_request(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    store.is_unavailable = True

    await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 90)

    assert store.num_calls <= 2  # for 90 requests


async def test_a_hanging_store_delays_requests_only_briefly(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    store.hangs = True

    async with asyncio.timeout(2.0):
        assert await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 20) == 20
    await gateway.leases.close()


async def test_a_store_that_recovered_is_used_again(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    store.is_unavailable = True
    await gateway.try_to_spend(SpendRequest(USER_BUCKET, 1))
    store.is_unavailable = False
    store.clock.pass_s(PROBE_S)

    await gateway.try_to_spend(SpendRequest(USER_BUCKET, 1))

    assert not gateway.leases.is_store_unavailable


async def test_quota_units_spent_without_the_store_are_settled_later(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    store.is_unavailable = True
    await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 60))
    store.is_unavailable = False
    store.clock.pass_s(PROBE_S)
    await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 1))

    await gateway.leases.close()

    assert store.buckets[TOKEN_QUOTA.key].used == 60 + 1


async def test_rate_units_spent_without_the_store_are_not_settled_later(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    store.is_unavailable = True
    await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 100)
    store.is_unavailable = False
    store.clock.pass_s(PROBE_S)
    await gateway.try_to_spend(SpendRequest(USER_BUCKET, 1))

    # The units of a rate become available again with time, so the store need not count them.
    assert await gateway.spend_repeatedly(SpendRequest(USER_BUCKET, 1), 50) == 50


async def test_many_buckets_use_limited_memory_and_return_their_leases(
    store: ManualClockLeaseStore,
) -> None:
    gateway = Gateway(store, max_buckets=50)
    quotas = [
        replace(TOKEN_QUOTA, key=f"caret:token-quota:{{acme}}:{number}") for number in range(10_000)
    ]

    for quota in quotas:
        await gateway.try_to_spend(SpendRequest(quota, 1))
    await gateway.leases.close()

    assert gateway.leases.num_buckets == 0
    assert {bucket.used for bucket in store.buckets.values()} == {1}


async def test_a_lowered_limit_applies_at_once(gateway: Gateway) -> None:
    await gateway.try_to_spend(SpendRequest(USER_BUCKET, 1))
    lower = replace(USER_BUCKET, capacity=3, max_lease=1, lease=1)

    assert await gateway.spend_repeatedly(SpendRequest(lower, 1), 50) <= 3


async def test_a_cancelled_request_has_spent_nothing(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    task = asyncio.create_task(gateway.leases.spend([SpendRequest(TOKEN_QUOTA, 60)]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await gateway.run_background_tasks()

    await gateway.leases.close()

    assert store.buckets[TOKEN_QUOTA.key].used == 0

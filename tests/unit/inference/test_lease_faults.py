"""Leases of rate-limit units when calls to the store fail, gateways are killed, or limits change.

USER_BUCKET (a rate) and TOKEN_QUOTA have a capacity of 100 units, and leases of about ten units.
`try_to_spend` returns 0.0 if it has spent the units. If not, it returns the seconds to wait.
`spend_repeatedly` returns how many of its requests were allowed.
"""

import asyncio
from dataclasses import replace

import pytest

from inference.gateway.rate_limits.leased_bucket import IDLE_S, LEASE_S
from inference.gateway.rate_limits.leases import (
    CLOSE_S,
    MAX_CALL_S,
    PROBE_S,
    Leases,
    RateLimitExceeded,
    SpendRequest,
)
from tests.fakes.clock import FakeClock
from tests.fakes.leases import FakeLeaseStore
from tests.fakes.leasing import (
    TENANT_BUCKET,
    TOKEN_QUOTA,
    USER_BUCKET,
    Gateway,
    ManualClockLeaseStore,
)
from tests.fakes.virtual_time import VirtualClock, run_in_virtual_time


@pytest.fixture
def store() -> ManualClockLeaseStore:
    return ManualClockLeaseStore(FakeClock())


@pytest.fixture
def gateway(store: ManualClockLeaseStore) -> Gateway:
    return Gateway(store)


async def test_a_lease_in_use_is_kept(store: ManualClockLeaseStore, gateway: Gateway) -> None:
    for _ in range(4):
        await gateway.try_to_spend(SpendRequest(USER_BUCKET, 1))
        store.clock.pass_s(IDLE_S * 0.6)
        await gateway.leases.evict_idle()

    assert store.num_calls == 1


async def test_rejected_requests_do_not_keep_a_lease_in_use(store: ManualClockLeaseStore) -> None:
    gateway, other_gateway = Gateway(store), Gateway(store)
    await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 60))

    for _ in range(40):
        await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 60))
        store.clock.pass_s(IDLE_S / 10)
        await gateway.leases.evict_idle()

    # The first gateway spent 60 of the 100 units, and has returned its lease.
    assert await other_gateway.spend_repeatedly(SpendRequest(TOKEN_QUOTA, 1), 50) == 40


async def test_a_rejected_gateway_holds_no_units_that_it_cannot_use(
    store: ManualClockLeaseStore,
) -> None:
    gateway, other_gateway = Gateway(store), Gateway(store)
    await gateway.try_to_spend(SpendRequest(replace(TOKEN_QUOTA, lease=1, max_lease=1), 60))

    await other_gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 60))

    # The 60 units were spent. The lease of the first gateway has one unit.
    assert store.buckets[TOKEN_QUOTA.key].used == 60 + 1


async def test_the_lease_of_a_killed_gateway_expires(store: ManualClockLeaseStore) -> None:
    gateway, other_gateway = Gateway(store), Gateway(store)
    await gateway.leases.spend([SpendRequest(TOKEN_QUOTA, 60)])
    wait_s = await other_gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 60))

    store.clock.pass_s(LEASE_S)

    assert wait_s > 0
    assert await other_gateway.spend_repeatedly(SpendRequest(TOKEN_QUOTA, 20), 50) == 5


async def test_an_expired_lease_is_not_spent_while_the_store_is_unreachable(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    quota_without_debt = replace(TOKEN_QUOTA, max_debt=0)
    await gateway.try_to_spend(SpendRequest(quota_without_debt, 1))
    store.is_unavailable = True

    wait_s = await gateway.try_to_spend(SpendRequest(quota_without_debt, 1))
    store.clock.pass_s(LEASE_S)

    assert wait_s == 0.0
    assert await gateway.try_to_spend(SpendRequest(quota_without_debt, 1)) > 0


async def test_units_spent_from_an_expired_lease_are_counted_later(
    store: ManualClockLeaseStore,
) -> None:
    gateway, other_gateway = Gateway(store), Gateway(store)
    (charge,) = await gateway.leases.spend([SpendRequest(TOKEN_QUOTA, 60)])
    store.clock.pass_s(LEASE_S)
    await other_gateway.spend_repeatedly(SpendRequest(TOKEN_QUOTA, 1), 70)

    gateway.leases.settle(charge, 50)
    await gateway.leases.evict_idle()

    assert store.spent(TOKEN_QUOTA.key) == 50 + 70


async def test_repeated_outages_allow_no_more_debt_than_one_outage(
    store: ManualClockLeaseStore,
) -> None:
    gateway = Gateway(store)
    quota = replace(TOKEN_QUOTA, max_debt=30)
    await gateway.spend_repeatedly(SpendRequest(quota, 1), 100)

    num_allowed = 0
    for _ in range(5):
        store.is_unavailable = True
        store.clock.pass_s(2 * IDLE_S)
        await gateway.leases.evict_idle()
        num_allowed += await gateway.spend_repeatedly(SpendRequest(quota, 1), 50)
        store.is_unavailable = False
        store.clock.pass_s(2 * IDLE_S)
        await gateway.leases.evict_idle()

    assert num_allowed == 30


async def test_a_lowered_budget_returns_leased_units(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 20))
    lower = replace(TOKEN_QUOTA, capacity=50, lease=1, max_lease=1)

    assert await gateway.spend_repeatedly(SpendRequest(lower, 1), 50) == 30
    await gateway.leases.close()
    assert store.buckets[TOKEN_QUOTA.key].used == 50


async def test_a_long_request_keeps_its_reservation(store: ManualClockLeaseStore) -> None:
    gateway, other_gateway = Gateway(store), Gateway(store)
    (charge,) = await gateway.leases.spend([SpendRequest(TOKEN_QUOTA, 60)])

    for _ in range(20):
        store.clock.pass_s(IDLE_S)
        await gateway.leases.evict_idle()

    assert store.num_held(TOKEN_QUOTA.key) == 60
    assert await other_gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 60)) > 0
    gateway.leases.settle(charge, 60)
    await gateway.leases.close()
    assert store.buckets[TOKEN_QUOTA.key].used == 60


async def test_a_settlement_after_eviction_of_its_bucket_is_counted(
    store: ManualClockLeaseStore,
) -> None:
    gateway = Gateway(store, max_buckets=1)
    (charge,) = await gateway.leases.spend([SpendRequest(TOKEN_QUOTA, 60)])
    for number in range(5):
        await gateway.try_to_spend(
            SpendRequest(replace(TOKEN_QUOTA, key=f"caret:token-quota:{{acme}}:{number}"), 1)
        )

    gateway.leases.settle(charge, 50)
    await gateway.leases.close()

    assert store.buckets[TOKEN_QUOTA.key].used == 50


def test_calls_with_lost_responses_cost_no_units_and_enlarge_no_lease() -> None:
    async def scenario() -> None:
        store = FakeLeaseStore(VirtualClock())
        leases, other_leases = Leases(store, VirtualClock()), Leases(store, VirtualClock())
        large = replace(TOKEN_QUOTA, capacity=1_000_000, max_lease=50_000, max_debt=50_000)
        store.loses_responses = True
        for _ in range(60):
            (charge,) = await leases.spend([SpendRequest(large, 1)])
            leases.settle(charge, 1)
            await asyncio.sleep(PROBE_S)
        assert len(store.calls) > 20
        assert store.num_held(large.key) <= large.lease + 1

        store.loses_responses = False
        await leases.close()

        assert store.buckets[large.key].used == 60
        (charge,) = await other_leases.spend([SpendRequest(large, large.capacity - 60)])
        assert charge.is_leased

    run_in_virtual_time(scenario())


def test_only_due_buckets_are_requested_while_the_store_is_unreachable() -> None:
    async def scenario() -> None:
        store = FakeLeaseStore(VirtualClock())
        leases = Leases(store, VirtualClock())
        await leases.spend([SpendRequest(TENANT_BUCKET, 1)])
        store.hangs = True
        store.calls.clear()

        for _ in range(5):
            await leases.spend([SpendRequest(TENANT_BUCKET, 1), SpendRequest(USER_BUCKET, 10)])
            await asyncio.sleep(PROBE_S)

        keys = {request.spec.key for call in store.calls for request in call}
        assert keys == {USER_BUCKET.key}

    run_in_virtual_time(scenario())


def test_a_return_is_repeated_until_it_is_acknowledged() -> None:
    async def scenario() -> None:
        store = FakeLeaseStore(VirtualClock())
        leases = Leases(store, VirtualClock())
        (charge,) = await leases.spend([SpendRequest(TOKEN_QUOTA, 1)])
        leases.settle(charge, 1)
        await asyncio.sleep(IDLE_S + 1)
        store.is_unavailable = True
        for _ in range(3):
            await leases.evict_idle()
        assert store.num_held(TOKEN_QUOTA.key) > 0

        store.is_unavailable = False
        await leases.evict_idle()

        assert store.buckets[TOKEN_QUOTA.key].used == 1
        await leases.evict_idle()
        assert leases.num_buckets == 0

    run_in_virtual_time(scenario())


def test_units_being_returned_are_not_spent_even_if_the_response_is_lost() -> None:
    async def scenario() -> None:
        store = FakeLeaseStore(VirtualClock())
        leases, other_leases = Leases(store, VirtualClock()), Leases(store, VirtualClock())
        quota_without_debt = replace(TOKEN_QUOTA, max_debt=0)
        (charge,) = await leases.spend([SpendRequest(quota_without_debt, 1)])
        leases.settle(charge, 1)
        await asyncio.sleep(IDLE_S + 1)
        store.loses_responses = True
        await leases.evict_idle()
        store.loses_responses = False
        await other_leases.spend([SpendRequest(quota_without_debt, 99)])
        store.is_unavailable = True

        with pytest.raises(RateLimitExceeded):
            await leases.spend([SpendRequest(quota_without_debt, 1)])

    run_in_virtual_time(scenario())


@pytest.mark.parametrize(("outage_s", "is_returned"), [(0.4, True), (60.0, False)])
def test_a_closing_gateway_repeats_its_return_for_a_limited_time(
    outage_s: float, is_returned: bool
) -> None:
    async def scenario() -> None:
        store = FakeLeaseStore(VirtualClock())
        leases = Leases(store, VirtualClock())
        await leases.spend([SpendRequest(USER_BUCKET, 1)])
        store.is_unavailable = True
        asyncio.get_running_loop().call_later(outage_s, setattr, store, "is_unavailable", False)
        started_s = VirtualClock().monotonic_s()

        await leases.close()

        assert VirtualClock().monotonic_s() - started_s <= CLOSE_S + MAX_CALL_S
        assert (store.num_held(USER_BUCKET.key) == 0) == is_returned

    run_in_virtual_time(scenario())


async def test_calls_and_held_units_are_counted(
    store: ManualClockLeaseStore, gateway: Gateway
) -> None:
    await gateway.try_to_spend(SpendRequest(TOKEN_QUOTA, 1))
    store.is_unavailable = True
    await gateway.try_to_spend(SpendRequest(USER_BUCKET, 1))

    await gateway.leases.evict_idle()

    assert gateway.leases.num_calls == {"answered": 1, "failed": 1}
    # The spent unit of TOKEN_QUOTA, and a lease of ten.
    assert gateway.leases.num_granted_units == {"tokens": 11, "user": 0}
    assert gateway.leases.num_unanswered == 1


def test_a_gateway_closes_at_once_after_a_limit_fell_below_its_reservations() -> None:
    async def scenario() -> None:
        store = FakeLeaseStore(VirtualClock())
        leases = Leases(store, VirtualClock())
        await leases.spend([SpendRequest(TOKEN_QUOTA, 60)])
        with pytest.raises(RateLimitExceeded):
            await leases.spend([SpendRequest(replace(TOKEN_QUOTA, capacity=50), 1)])
        started_s = VirtualClock().monotonic_s()

        await leases.close()

        assert store.num_held(TOKEN_QUOTA.key) == 50
        assert VirtualClock().monotonic_s() == started_s

    run_in_virtual_time(scenario())

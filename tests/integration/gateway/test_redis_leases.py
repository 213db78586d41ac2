"""The lease store of rate limits on a real Valkey: arithmetic, clock, and recovery from faults."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis

from caret.foundation.clock import SystemClock
from caret.foundation.ids import TenantId
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.paths import EmbeddedPaths
from inference.gateway.rate_limits.leased_bucket import BucketSpec
from inference.gateway.rate_limits.leases import Leases, RateLimitExceeded, SpendRequest
from inference.gateway.rate_limits.redis_lease_store import RedisLeaseStore, open_lease_redis
from tests.fakes.clock import FakeClock
from tests.fakes.leases import FakeLeaseStore
from tests.fakes.tcp_proxy import fault_proxy
from tests.functional.gateway.gateway_stack import wait_until
from tests.integration.gateway.lease_holder import (
    QUOTA,
    RATE,
    RATE_INTERVAL_S,
    LeaseHolder,
    count_free_units,
)
from tests.stack.seed import seeds

CLOSE_S = 60.0  # for the return of all leases, on a busy machine
# A lease is stored as "number since spent_since units end". See LeaseRequest; `end` is the time at
# which the lease ends, in microseconds.


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPaths]:
    paths = EmbeddedPaths(Path(tmp_path_factory.mktemp("home")))
    with EmbeddedValkey(paths):
        yield paths


@pytest.fixture
async def redis(valkey: EmbeddedPaths) -> AsyncIterator[Redis]:
    async with Redis.from_url(valkey.redis_url.read_text().strip()) as client:
        await client.flushall()
        yield client


@pytest.mark.parametrize("spec", [RATE, QUOTA], ids=["rate", "quota"])
async def test_leased_units_are_unavailable_until_they_are_returned(
    redis: Redis, spec: BucketSpec
) -> None:
    holder_here = LeaseHolder(RedisLeaseStore(redis), spec)
    other_holder = LeaseHolder(RedisLeaseStore(redis), spec, name="there")

    granted = [
        (await holder.renew(units)).granted_units
        for holder, units in [(holder_here, 60), (other_holder, 60), (other_holder, 40)]
    ]
    await holder_here.renew(30)

    assert granted == [60, 0, 40]
    assert await count_free_units(redis, spec) == 30


@pytest.mark.parametrize("spec", [RATE, QUOTA], ids=["rate", "quota"])
async def test_settled_units_stay_spent(redis: Redis, spec: BucketSpec) -> None:
    holder = LeaseHolder(RedisLeaseStore(redis), spec)
    await holder.renew(60)

    await holder.renew(0, spent=45)

    assert await count_free_units(redis, spec) == 55


async def test_a_lease_exceeds_the_need_by_a_quarter_of_the_rest(redis: Redis) -> None:
    request = replace(LeaseHolder(RedisLeaseStore(redis)).next_request(20), wanted_units=90)

    (grant,) = await RedisLeaseStore(redis).renew("here", [request])

    assert grant.granted_units == 20 + 80 // 4


@pytest.mark.parametrize("spec", [RATE, QUOTA], ids=["rate", "quota"])
async def test_a_repeated_or_late_request_changes_nothing(redis: Redis, spec: BucketSpec) -> None:
    store = RedisLeaseStore(redis)
    holder = LeaseHolder(store, spec)
    await holder.renew(60)
    older = holder.request(60)  # the first request, which arrives again later
    await holder.renew(50, spent=10)
    latest = replace(holder.request(50, spent=10), since=older.number)  # the second, again

    (older_grant,) = await store.renew("here", [older])
    (latest_grant,) = await store.renew("here", [latest])

    assert older_grant.granted_units == latest_grant.granted_units == 50
    assert await count_free_units(redis, spec) == 40


@pytest.mark.parametrize("spec", [RATE, QUOTA], ids=["rate", "quota"])
async def test_a_request_without_a_response_is_not_settled_twice(
    redis: Redis, spec: BucketSpec
) -> None:
    holder = LeaseHolder(RedisLeaseStore(redis), spec)
    await holder.renew(60)
    await holder.renew(50, spent=10, has_response=False)

    grant = await holder.renew(45, spent=15)  # 10 of these were reported before
    await holder.renew(0)

    assert grant.granted_units == 45
    assert await count_free_units(redis, spec) == 85


async def test_a_lease_that_is_not_renewed_expires(redis: Redis) -> None:
    store = RedisLeaseStore(redis)
    holder, other_holder = LeaseHolder(store, QUOTA), LeaseHolder(store, QUOTA, name="there")
    await holder.renew(100)
    refusal = await other_holder.renew(50)
    holder.store = RedisLeaseStore(redis, lease_s=0.05)  # the last renewal is a short one
    await holder.renew(100)

    async def is_free() -> bool:
        return (await other_holder.renew(50)).granted_units == 50

    assert (refusal.granted_units, refusal.wait_s) == (0, 1.0)  # a quota's wait is always 1 s
    assert await wait_until(is_free)
    # Units spent in the expired lease count: 70, and the 50 of the other holder, exceed 100 by 20.
    overdrawn = await holder.renew(0, spent=70)
    assert (overdrawn.granted_units, overdrawn.overdrawn_units) == (0, 20)


async def test_entries_of_stopped_gateways_are_deleted(redis: Redis) -> None:
    store = RedisLeaseStore(redis, lease_s=0.01, remember_s=0.01)
    for number in range(50):
        await LeaseHolder(store, QUOTA, name=f"gone {number}").renew(1)
    await asyncio.sleep(0.03)

    await LeaseHolder(store, QUOTA).renew(1)

    assert sorted(await redis.hkeys(QUOTA.key)) == [b"gateway:here", b"used"]


async def test_units_already_counted_by_the_ledger_are_not_counted_twice(redis: Redis) -> None:
    holder = LeaseHolder(RedisLeaseStore(redis), QUOTA)
    await holder.renew(10)
    # The ledger counts 30 units (`raised`) that the gateway has not reported yet.
    await redis.hincrby(QUOTA.key, "used", 30)
    await redis.hset(QUOTA.key, "raised", "30")

    await holder.renew(0, spent=50)

    assert await redis.hmget(QUOTA.key, "used", "raised") == [b"50", b"0"]


async def test_a_refusal_returns_the_time_until_enough_units_are_available(redis: Redis) -> None:
    store = RedisLeaseStore(redis)
    holder, other_holder = (LeaseHolder(store, name=name) for name in ("here", "there"))
    await holder.renew(100)
    refusal = await other_holder.renew(5)

    # Let time pass: instead of a wait, all stored times become earlier.
    await redis.hincrby(RATE.key, "full_at", -round(refusal.wait_s * 10**6))

    assert refusal.granted_units == 0
    assert 4 * RATE_INTERVAL_S < refusal.wait_s <= 5 * RATE_INTERVAL_S
    assert (await other_holder.renew(5)).granted_units == 5


async def test_several_buckets_are_returned_in_the_requested_order(redis: Redis) -> None:
    store = RedisLeaseStore(redis)
    rate, quota = LeaseHolder(store), LeaseHolder(store, QUOTA)

    grants = await store.renew("here", [rate.next_request(7), quota.next_request(100)])

    assert [grant.granted_units for grant in grants] == [7, 100]


async def test_a_clock_set_back_does_not_make_a_bucket_negative(redis: Redis) -> None:
    seconds, _ = await redis.time()
    await redis.hset(RATE.key, "full_at", (seconds + 10**9) * 10**6)  # in microseconds

    refusal = await LeaseHolder(RedisLeaseStore(redis)).renew(1)

    assert refusal.granted_units == 0
    assert refusal.wait_s <= 60.0


async def test_a_lease_from_before_a_clock_was_set_back_expires(redis: Redis) -> None:
    seconds, _ = await redis.time()
    lease_of_100_units = f"7 1 0 100 {(seconds + 10**6) * 10**6}"  # it ends in 10**6 seconds
    await redis.hset(QUOTA.key, mapping={"used": "100", "gateway:gone": lease_of_100_units})

    assert (await LeaseHolder(RedisLeaseStore(redis), QUOTA).renew(100)).granted_units == 100


async def test_a_full_bucket_without_leases_expires(redis: Redis) -> None:
    holder = LeaseHolder(RedisLeaseStore(redis))
    await holder.renew(3)
    left_ms = await redis.pttl(RATE.key)

    await holder.renew(0)

    assert 60_000 < left_ms <= 3 * 60_000  # three units come back in three minutes
    assert 0 < await redis.pttl(RATE.key) <= 60_000  # as long as a lease


async def test_a_daily_quota_expires_after_its_day(redis: Redis) -> None:
    await LeaseHolder(RedisLeaseStore(redis), QUOTA).renew(3)

    assert 86_400 < await redis.ttl(QUOTA.key) <= 2 * 86_400


async def test_large_numbers_are_counted_exactly(redis: Redis) -> None:
    large = replace(QUOTA, capacity=10**12)
    holder = LeaseHolder(RedisLeaseStore(redis), large)
    await holder.renew(10**12 - 3)
    await holder.renew(0, spent=10**12 - 3)

    assert await count_free_units(redis, large) == 3


async def test_units_of_a_fast_rate_become_available_within_microseconds(redis: Redis) -> None:
    # A million requests a minute: one unit comes back every 6 us.
    fast = replace(RATE, capacity=10**6, interval_s=6e-6)
    holder = LeaseHolder(RedisLeaseStore(redis), fast)
    began_us = await _read_time_us(redis)
    await holder.renew(10**6)
    await holder.renew(0, spent=10**6)

    for _ in range(5):
        num_free_units = await count_free_units(redis, fast)

        assert 0 < num_free_units <= (await _read_time_us(redis) - began_us) / 6


async def _read_time_us(redis: Redis) -> int:
    """Return the time of Redis's clock, which is the only one that counts."""
    seconds, microseconds = await redis.time()
    return int(seconds) * 10**6 + int(microseconds)


async def test_the_script_is_loaded_again_after_a_script_flush(redis: Redis) -> None:
    holder = LeaseHolder(RedisLeaseStore(redis))
    await holder.renew(10)
    await redis.script_flush()

    assert (await holder.renew(90)).granted_units == 90


async def test_an_unreachable_redis_raises_an_os_error(tmp_path: Path) -> None:
    async with Redis.from_url(f"unix://{tmp_path}/nobody.sock") as unreachable:
        with pytest.raises(OSError, match="limits"):
            async with asyncio.timeout(5):
                await LeaseHolder(RedisLeaseStore(unreachable)).renew(1)


@pytest.mark.parametrize("seed", seeds(2, deep=20))
# The clock of the fake stands still, so the rate is slow: no unit may come back in the script.
@pytest.mark.parametrize("spec", [replace(RATE, interval_s=10**6), QUOTA])
async def test_the_fake_store_behaves_like_the_script(
    redis: Redis, spec: BucketSpec, seed: int
) -> None:
    chance, script, fake = random.Random(seed), RedisLeaseStore(redis), FakeLeaseStore(FakeClock())
    holders = [LeaseHolder(script, spec, name=name) for name in "abc"]

    for _ in range(100):
        holder = chance.choice(holders)
        holder.number += chance.choice([0, 1, 1, 1])  # 0: a repeated request
        minimum, needed_units, wanted_units = sorted(chance.choices(range(60), k=3))
        capacity = chance.choice([60, 100, 100, 100])
        request = replace(
            holder.request(0, spent=chance.choice([0, 5, 25])),
            spec=replace(spec, capacity=capacity),
            min_units=minimum,
            needed_units=needed_units,
            wanted_units=wanted_units,
        )
        (expected,) = fake.apply(holder.name, [request])
        (grant,) = await script.renew(holder.name, [request])
        assert grant.granted_units == expected.granted_units
        assert grant.overdrawn_units == expected.overdrawn_units
        assert grant.wait_s == pytest.approx(expected.wait_s, rel=1e-3)
        holder.since = chance.choice([holder.since, holder.number])


async def test_two_gateways_never_exceed_the_limit(redis: Redis) -> None:
    # On a busy machine, a gateway must not time out and continue without Redis.
    gateways = [Leases(RedisLeaseStore(redis), SystemClock(), max_wait_s=30.0) for _ in range(2)]

    admitted = await asyncio.gather(*(_try_to_spend(gateways[n % 2], RATE) for n in range(400)))
    for gateway in gateways:
        await gateway.close(timeout_s=CLOSE_S)

    # A gateway may be refused while the other holds unused units. In the end, no unit is lost.
    assert 50 <= sum(admitted) <= 100
    assert await count_free_units(redis) == 100 - sum(admitted)


async def _try_to_spend(gateway: Leases, spec: BucketSpec, units: int = 1) -> bool:
    try:
        (spent,) = await gateway.spend([SpendRequest(spec, units)])
    except RateLimitExceeded:
        return False
    gateway.settle(spent, units)
    return True


async def test_more_calls_than_connections_do_not_fail(valkey: EmbeddedPaths, redis: Redis) -> None:
    """Each request belongs to another tenant, so requests cannot share a call."""
    tenants = [TenantId(f"t{n}") for n in range(500)]
    specs = [replace(RATE, tenant_id=t, key=f"caret:rate:{{{t}}}:user:") for t in tenants]
    url = valkey.redis_url.read_text().strip()
    async with open_lease_redis(url, socket_timeout_s=30.0) as connection:
        leases = Leases(RedisLeaseStore(connection), SystemClock(), max_wait_s=30.0)

        admitted = await asyncio.gather(*(_try_to_spend(leases, spec) for spec in specs))
        await leases.close(timeout_s=CLOSE_S)

    assert all(admitted)
    assert leases.num_calls["failed"] == 0


@dataclass
class QuotaLoad:
    """Requests of eight gateways against one quota, over a faulty connection."""

    gateways: list[Leases]
    spec: BucketSpec
    spent_units: int = 0
    num_refused: int = 0

    async def spend_for(self, seconds: float) -> None:
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            for gateway in self.gateways:
                is_spent = await _try_to_spend(gateway, self.spec, 100)
                self.spent_units += 100 * is_spent
                self.num_refused += not is_spent
            await asyncio.sleep(0.001)


async def test_a_slow_connection_refuses_no_request_and_loses_no_units(
    valkey: EmbeddedPaths, redis: Redis
) -> None:
    """6% of the responses take 0.6 s, and 2% never arrive; the quota is almost unused."""
    quota = replace(QUOTA, capacity=10**8, lease=2_000, max_lease=5 * 10**6, max_debt=5 * 10**6)
    redis_url = urlsplit(valkey.redis_url.read_text().strip())
    async with AsyncExitStack() as stack:
        proxy = stack.enter_context(fault_proxy(redis_url.path))
        proxy.slow_share, proxy.lost_share = 0.06, 0.02
        url = f"redis://:{redis_url.password}@127.0.0.1:{proxy.port}/0"
        gateways = []
        for _ in range(8):
            connection = await stack.enter_async_context(open_lease_redis(url, socket_timeout_s=2))
            gateways.append(Leases(RedisLeaseStore(connection), SystemClock()))
        load = QuotaLoad(gateways, quota)

        await load.spend_for(8.0)

        num_failed = sum(gateway.num_calls["failed"] for gateway in gateways)
        fields = await redis.hgetall(quota.key)
        leases = [lease for name, lease in fields.items() if b":" in name]  # gateway:<ID>
        proxy.slow_share = proxy.lost_share = 0.0
        for gateway in gateways:
            await gateway.close(timeout_s=CLOSE_S)
    assert num_failed > 0
    assert load.num_refused == 0
    max_units = max(int(lease.split()[3]) for lease in leases)
    assert 0 < max_units <= quota.max_lease + 100  # the spare units, and those of one request
    assert await redis.hget(quota.key, "used") == str(load.spent_units).encode()

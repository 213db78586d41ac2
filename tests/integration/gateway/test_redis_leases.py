"""The leases' store on a real Valkey: its arithmetic, its clock, and what it survives."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from caret.embedded.paths import EmbeddedPaths
from caret.embedded.valkey import EmbeddedValkey
from caret.foundation.clock import SystemClock
from inference.gateway.bucket import Rule
from inference.gateway.leases import Grant, Leases, OverLimit, Want
from inference.gateway.redis_leases import RedisLeases

# A unit comes back after a minute: none does within a test.
RATE = Rule(
    kind="user",
    holder="acme",
    key="caret:rate:{acme}:user:ada",
    capacity=100,
    interval_s=60.0,
    lease=10,
    max_lease=25,
)
BUDGET = replace(RATE, kind="tokens", key="caret:budget:{acme}:fast", interval_s=None)


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


async def _take(redis: Redis, rule: Rule, units: int) -> Grant:
    (grant,) = await RedisLeases(redis).take([Want(rule, units)])
    return grant


@pytest.mark.parametrize("rule", [RATE, BUDGET])
async def test_what_is_taken_is_missing_and_what_is_given_back_is_there_again(
    redis: Redis, rule: Rule
) -> None:
    units = [(await _take(redis, rule, wanted)).units for wanted in (60, 60, -30, 60, 1)]

    assert units == [60, 40, -30, 30, 0]


async def test_a_refusal_says_when_a_unit_is_back(redis: Redis) -> None:
    quick = replace(RATE, interval_s=0.05)
    refused = await _take(redis, quick, 200)

    await asyncio.sleep(refused.wait_s + 0.005)

    assert refused.units == 100
    assert 0 < refused.wait_s <= 0.05
    assert (await _take(redis, quick, 1)).units == 1


async def test_several_buckets_are_answered_in_their_order(redis: Redis) -> None:
    grants = await RedisLeases(redis).take([Want(RATE, 7), Want(BUDGET, 200)])

    assert [grant.units for grant in grants] == [7, 100]


async def test_a_clock_that_was_set_back_leaves_no_bucket_emptier_than_empty(redis: Redis) -> None:
    seconds, _ = await redis.time()
    await redis.set(RATE.key, (seconds + 10**9) * 10**6)

    refused = await _take(redis, RATE, 1)

    assert refused.units == 0
    assert refused.wait_s <= 60.0


async def test_a_bucket_leaves_redis_when_it_is_full_again(redis: Redis) -> None:
    await _take(redis, RATE, 3)
    left_ms = await redis.pttl(RATE.key)

    await _take(redis, RATE, -3)

    assert 0 < left_ms <= 3 * 60_000
    assert await redis.exists(RATE.key) == 0


async def test_a_budget_leaves_redis_after_its_day(redis: Redis) -> None:
    await _take(redis, BUDGET, 3)

    assert 86_400 < await redis.ttl(BUDGET.key) <= 2 * 86_400


async def test_more_than_was_taken_cannot_be_given_back(redis: Redis) -> None:
    for rule in (RATE, BUDGET):
        await _take(redis, rule, -1_000)

        assert (await _take(redis, rule, 1_000)).units == 100


async def test_large_numbers_keep_their_last_digits(redis: Redis) -> None:
    large = replace(BUDGET, capacity=10**12)
    await _take(redis, large, 10**12 - 3)

    assert (await _take(redis, large, 10)).units == 3


async def test_a_fast_rate_is_counted_to_the_unit(redis: Redis) -> None:
    # A million requests a minute: a unit comes back every 6 us.
    fast = replace(RATE, capacity=10**6, interval_s=6e-6)

    grants = [await _take(redis, fast, 10**6) for _ in range(5)]

    assert grants[0].units == 10**6
    assert all(0 < grant.units < 100_000 for grant in grants[1:])


async def test_a_redis_that_has_forgotten_the_script_learns_it_again(redis: Redis) -> None:
    await _take(redis, RATE, 10)
    await redis.script_flush()

    assert (await _take(redis, RATE, 100)).units == 90


async def test_a_redis_that_is_away_is_an_os_error(tmp_path: Path) -> None:
    async with Redis.from_url(f"unix://{tmp_path}/nobody.sock") as nobody:
        with pytest.raises(OSError, match="limits"):
            async with asyncio.timeout(5):
                await _take(nobody, RATE, 1)


async def test_two_gateways_never_let_more_through_than_the_limit(redis: Redis) -> None:
    # However busy this machine is: who waits no longer would go on alone.
    gateways = [Leases(RedisLeases(redis), SystemClock(), max_wait_s=30.0) for _ in range(2)]

    async def spends(gateway: Leases) -> int:
        try:
            await gateway.take([Want(RATE, 1)])
        except OverLimit:
            return 0
        return 1

    let_through = await asyncio.gather(*(spends(gateways[n % 2]) for n in range(400)))
    for gateway in gateways:
        await gateway.close()

    # What a gateway still held when the other was refused is not lost: it is given back.
    assert 50 <= sum(let_through) <= 100
    assert (await _take(redis, RATE, 1_000)).units == 100 - sum(let_through)

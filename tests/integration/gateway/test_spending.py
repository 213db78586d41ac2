"""Budgets on a real Valkey: several gateways and many requests at once never overspend."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest
from redis.asyncio import Redis

from caret.contracts.policy import Tier
from caret.contracts.pricing import (
    KEEP_SPEND_S,
    BudgetScope,
    HardBudget,
    SpendingLimits,
    TierPrices,
    TokenPrices,
    billable_tokens,
    cost_micros,
)
from caret.foundation.clock import SystemClock
from caret.foundation.ids import UserId
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.paths import EmbeddedPaths
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped
from inference.gateway.rate_limits.leases import Leases
from inference.gateway.rate_limits.quotas import Quotas
from inference.gateway.rate_limits.redis_lease_store import RedisLeaseStore
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_request, make_trace
from tests.fakes.tenants import ACME, ADA, ALICE, make_principal
from tests.stack.seed import seeds

# Micros for a million tokens: a prompt token costs 1 micro, and a generated one costs 4.
PRICES = TierPrices(prompt=1_000_000, cached_prompt=100_000, generated=4_000_000)
CLOSE_S = 60.0  # for the return of all leases, on a busy machine
MAX_COST_MICROS = 2_000 + 4 * 64  # 2,000 prompt tokens and 64 generated ones


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


def _make_trace_with_usage(chance: random.Random) -> RequestTrace:
    trace = make_trace()
    trace.mark_engine_called()
    trace.prompt_tokens = chance.randint(0, 2_000)
    trace.record_chunk(
        generated_tokens=chance.randint(1, 64), cached_tokens=chance.randint(0, 2_000)
    )
    return trace


def _cost_of(trace: RequestTrace) -> int:
    tokens = billable_tokens(
        prompt=trace.prompt_tokens,
        cached=trace.cached_tokens,
        generated=trace.generated_tokens,
    )
    return cost_micros(PRICES, tokens)


async def _read_counts(redis: Redis) -> dict[str, int]:
    """Return the units that Redis has counted for each budget, by the budget's ID."""
    counts = {}
    for name in cast(list[bytes], await redis.keys()):
        redis_key = name.decode()  # caret:spend:{<tenant ID>}:<budget ID>:<month>
        units = cast(bytes, await redis.hget(redis_key, "used"))
        counts[redis_key.split(":")[3]] = int(units)
    return counts


@pytest.mark.parametrize("seed", seeds(1, deep=10))
async def test_a_thousand_concurrent_requests_never_exceed_a_budget(
    redis: Redis, seed: int
) -> None:
    chance = random.Random(seed)
    # A request costs 530 micros on average, so a thousand of them would exceed both budgets.
    limit = 100 * MAX_COST_MICROS
    spending = SpendingLimits(
        (TokenPrices(0, dict.fromkeys(Tier, PRICES)),),
        (
            HardBudget("all", BudgetScope.TENANT, limit),
            HardBudget("ada", BudgetScope.USER, limit // 4, (ADA,)),
        ),
    )
    # No new month begins during the test, as their clock stands still.
    # 30 s, as the test machine may be busy: after a longer wait for Redis, a gateway admits
    # requests without it.
    gateways = [
        Quotas(Leases(RedisLeaseStore(redis), SystemClock(), max_wait_s=30.0), FakeClock())
        for _ in range(3)
    ]
    admitted: list[tuple[UserId, int]] = []

    async def request(number: int, user: UserId) -> None:
        trace = _make_trace_with_usage(chance)
        principal = make_principal(user_id=user, spending=spending)
        try:
            async with gateways[number % 3].charge(principal, make_request(), trace):
                await asyncio.sleep(chance.random() / 100)
        except CompletionDropped:
            return
        admitted.append((user, _cost_of(trace)))

    # If all requests came at once, Alice could have reserved the whole budget of the tenant before
    # the first request of Ada is admitted.
    await request(0, ADA)
    await asyncio.gather(
        *(request(number, chance.choice((ADA, ALICE))) for number in range(1, 1_000))
    )
    for gateway in gateways:
        await gateway.leases.close(timeout_s=CLOSE_S)

    spent = sum(cost for _, cost in admitted)
    spent_by_ada = sum(cost for user, cost in admitted if user == ADA)
    assert 0 < spent <= limit
    assert 0 < spent_by_ada <= limit // 4
    assert await _read_counts(redis) == {"all": spent, "ada": spent_by_ada}


async def test_a_months_spending_is_kept_beyond_the_month(redis: Redis) -> None:
    spending = SpendingLimits(
        (TokenPrices(0, dict.fromkeys(Tier, PRICES)),),
        (HardBudget("all", BudgetScope.TENANT, 10**9),),
    )
    leases = Leases(RedisLeaseStore(redis), SystemClock(), max_wait_s=30.0)
    async with Quotas(leases, FakeClock()).charge(
        make_principal(spending=spending), make_request(), make_trace()
    ):
        (redis_key,) = cast(list[bytes], await redis.keys())
    await leases.close(timeout_s=CLOSE_S)

    assert redis_key.startswith(b"caret:spend:{" + ACME.encode())
    longest_month_s = 31 * 86_400
    assert longest_month_s < await redis.ttl(redis_key) <= KEEP_SPEND_S

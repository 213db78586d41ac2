"""A gateway that spends of leases, and the buckets that it spends of."""

import asyncio
from dataclasses import replace

from inference.gateway.rate_limits.leased_bucket import BucketSpec
from inference.gateway.rate_limits.leases import Leases, RateLimitExceeded, SpendRequest
from tests.fakes.clock import FakeClock
from tests.fakes.leases import FakeLeaseStore

RULE = BucketSpec(
    kind="user",
    holder="acme",
    key="caret:rate:{acme}:user:ada",
    capacity=100,
    interval_s=0.1,
    lease=10,
    max_lease=25,
)
TENANTS = replace(RULE, kind="tenant", key="caret:rate:{acme}:tenant:", capacity=1_000)
BUDGET = replace(RULE, kind="tokens", key="caret:token-quota:{acme}", interval_s=None, max_debt=100)


class TurnedStore(FakeLeaseStore):
    """Its clock stands until a test turns it."""

    clock: FakeClock


class Gateway:
    """One of those that share a store."""

    def __init__(self, store: TurnedStore, *, max_buckets: int = 100) -> None:
        self.leases = Leases(store, store.clock, max_buckets=max_buckets)

    async def spends(self, *wants: SpendRequest) -> float:
        """How long it is told to wait; 0: it may, and has used all."""
        try:
            for spent in await self.leases.take(wants):
                self.leases.settle(spent, spent.units)
        except RateLimitExceeded as over:
            return over.wait_s
        finally:
            await self.settles()
        return 0.0

    async def spends_many(self, want: SpendRequest, count: int) -> int:
        """How many of them were let through."""
        return sum([await self.spends(want) == 0.0 for _ in range(count)])

    async def settles(self) -> None:
        """Lets what goes on in the background come to its end."""
        for _ in range(6):
            await asyncio.sleep(0)

"""A gateway that spends from leases, and the buckets behind them."""

import asyncio
from dataclasses import replace

from caret.foundation.ids import TenantId
from inference.gateway.rate_limits.leased_bucket import BucketSpec
from inference.gateway.rate_limits.leases import Leases, RateLimitExceeded, SpendRequest
from tests.fakes.clock import FakeClock
from tests.fakes.leases import FakeLeaseStore

USER_BUCKET = BucketSpec(
    kind="user",
    tenant_id=TenantId("acme"),
    key="caret:rate:{acme}:user:ada",
    capacity=100,
    interval_s=0.1,  # a unit comes back every 0.1 s
    lease=10,  # spare units
    max_lease=25,
)
TENANT_BUCKET = replace(USER_BUCKET, kind="tenant", key="caret:rate:{acme}:tenant:", capacity=1_000)
TOKEN_QUOTA = replace(
    USER_BUCKET, kind="tokens", key="caret:token-quota:{acme}", interval_s=None, max_debt=100
)


class ManualClockLeaseStore(FakeLeaseStore):
    """A lease store whose clock only a test advances."""

    clock: FakeClock


class Gateway:
    """One of the gateways that share a store."""

    def __init__(self, store: ManualClockLeaseStore, *, max_buckets: int = 100) -> None:
        self.leases = Leases(store, store.clock, max_buckets=max_buckets)

    async def try_to_spend(self, *requests: SpendRequest) -> float:
        """Spend the units and return 0; if they are refused, return the seconds to wait."""
        try:
            for spent in await self.leases.spend(requests):
                self.leases.settle(spent, spent.units)
        except RateLimitExceeded as exceeded:
            return exceeded.wait_s
        finally:
            await self.run_background_tasks()
        return 0.0

    async def spend_repeatedly(self, request: SpendRequest, count: int) -> int:
        """Spend the units `count` times, and return how often they were granted."""
        return sum([await self.try_to_spend(request) == 0.0 for _ in range(count)])

    async def run_background_tasks(self) -> None:
        """Let the event loop run often enough for calls to the store to finish."""
        for _ in range(6):
            await asyncio.sleep(0)

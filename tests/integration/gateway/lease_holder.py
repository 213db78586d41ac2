"""A gateway's side of a lease, and the buckets that it leases from."""

import secrets
from dataclasses import replace

from redis.asyncio import Redis

from inference.gateway.rate_limits.leased_bucket import BucketSpec, LeaseGrant, LeaseRequest
from inference.gateway.rate_limits.redis_lease_store import RedisLeaseStore
from tests.fakes.leasing import USER_BUCKET

RATE_INTERVAL_S = 60.0
# A bucket of 100 units. A unit becomes available again after a minute: none does during a test.
RATE = replace(USER_BUCKET, interval_s=RATE_INTERVAL_S)
# A unit of a quota never becomes available again.
QUOTA = replace(RATE, kind="tokens", key="caret:token-quota:{acme}:fast", interval_s=None)


class LeaseHolder:
    """A gateway's side of one lease. It numbers its requests, as a gateway does."""

    def __init__(self, store: RedisLeaseStore, spec: BucketSpec = RATE, name: str = "here") -> None:
        self.store = store
        self.spec = spec
        self.name = name
        self.number = 1  # of the last request; the first request has the number 2
        self.since = 1  # number of the last request whose response has arrived

    async def renew(self, units: int, *, spent: int = 0, has_response: bool = True) -> LeaseGrant:
        """Renew the lease. Without `has_response`, the holder acts as if the response was lost."""
        (grant,) = await self.store.renew(self.name, [self.next_request(units, spent)])
        if has_response:
            self.since = self.number
        return grant

    def next_request(self, units: int, spent: int = 0) -> LeaseRequest:
        self.number += 1
        return self.request(units, spent)

    def request(self, units: int, spent: int = 0) -> LeaseRequest:
        # The minimum, the needed and the wanted units are the same.
        return LeaseRequest(self.spec, self.number, self.since, spent, units, units, units)


async def count_free_units(redis: Redis, spec: BucketSpec = RATE) -> int:
    """Return the units that another gateway could get, by taking and returning them."""
    probe = LeaseHolder(RedisLeaseStore(redis), spec, name=secrets.token_hex(8))
    request = replace(probe.next_request(spec.capacity), min_units=0)
    (grant,) = await probe.store.renew(probe.name, [request])
    (_,) = await probe.store.renew(probe.name, [probe.next_request(0)])
    return grant.granted_units

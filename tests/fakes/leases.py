"""An in-memory lease store with the same arithmetic as the Redis script (redis_lease_store.py).

It can be unavailable, or do the work and lose the response.
"""

import asyncio
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from caret.foundation.clock import Clock
from inference.gateway.rate_limits.leased_bucket import (
    LEASE_S,
    BucketSpec,
    LeaseGrant,
    LeaseRequest,
)
from inference.gateway.rate_limits.leases import Leases
from inference.gateway.rate_limits.quotas import Quotas
from tests.fakes.clock import FakeClock


@dataclass(slots=True)
class Lease:
    """A gateway's lease, and the request that the store applied last.

    `number`, `since` and `spent_since` are those of this request (see LeaseRequest).
    """

    number: int = 0
    since: int = 0
    spent_since: int = 0
    held: int = 0  # units that the gateway may spend
    ends_s: float = 0.0


@dataclass(slots=True)
class Bucket:
    """The units that the gateways share, of a budget or of a rate limit."""

    used: int = 0  # of a budget, leases included
    # Of a budget: the part of `used` that the ledger has added and no gateway has reported yet.
    raised: int = 0
    # Of a rate limit: the time at which all units are available again.
    full_at_s: float = 0.0
    leases: dict[str, Lease] = field(default_factory=dict)  # by gateway

    def take_back_ended_leases(self, now_s: float, *, but: str) -> int:
        """End the expired leases of all gateways but one, and return their units."""
        other_leases = (lease for name, lease in self.leases.items() if name != but)
        ended_leases = [lease for lease in other_leases if lease.ends_s <= now_s]
        units = sum(lease.held for lease in ended_leases)
        for lease in ended_leases:
            lease.held = 0
        return units


class FakeLeaseStore:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.is_unavailable = False
        self.hangs = False
        self.loses_responses = False
        self.calls: list[list[LeaseRequest]] = []
        self.buckets: defaultdict[str, Bucket] = defaultdict(Bucket)

    async def renew(self, gateway: str, requests: Sequence[LeaseRequest]) -> list[LeaseGrant]:
        self.calls.append(list(requests))
        if self.hangs:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if self.is_unavailable:
            raise OSError
        grants = self.apply(gateway, requests)
        if self.loses_responses:
            await asyncio.Event().wait()
        return grants

    def apply(self, gateway: str, requests: Sequence[LeaseRequest]) -> list[LeaseGrant]:
        return [self._grant(gateway, request) for request in requests]

    @property
    def num_calls(self) -> int:
        return len(self.calls)

    def spent(self, key: str) -> int:
        """Return the units used from a budget, without the leased ones."""
        return self.buckets[key].used - self.num_held(key)

    def num_held(self, key: str) -> int:
        return sum(lease.held for lease in self.buckets[key].leases.values())

    def _grant(self, gateway: str, request: LeaseRequest) -> LeaseGrant:
        bucket, now_s = self.buckets[request.spec.key], self.clock.monotonic_s()
        lease = bucket.leases.get(gateway) or Lease()
        if request.number <= lease.number:  # it arrived late or twice
            return LeaseGrant(lease.held)
        # Skip spending that an unanswered request already reported.
        spent = request.spent_since - (lease.spent_since if lease.since == request.since else 0)
        # `beyond`: units spent beyond the lease.
        kept_units, beyond = max(0, lease.held - spent), max(0, spent - lease.held)
        # Kept units become free here; `_share` lends them again.
        used_units = _count_used(bucket, request.spec, now_s) - kept_units
        # Count the units that a budget has spent beyond the lease, except those that the ledger has
        # added already. A rate limit's units need no counting: they come back by themselves.
        if request.spec.interval_s is None:
            already_raised = min(beyond, bucket.raised)
            used_units, bucket.raised = (
                used_units + beyond - already_raised,
                bucket.raised - already_raised,
            )
        # As in the script, only for a new gateway or if units are scarce.
        if gateway not in bucket.leases or _free(used_units, request.spec) < request.wanted_units:
            used_units -= bucket.take_back_ended_leases(now_s, but=gateway)
        grant, used_units = _share(used_units, kept_units, request)
        bucket.leases[gateway] = Lease(
            request.number, request.since, request.spent_since, grant.granted_units, now_s + LEASE_S
        )
        if request.spec.interval_s is None:
            bucket.used = round(used_units)
        else:
            bucket.full_at_s = now_s + used_units * request.spec.interval_s
        return grant


def _count_used(bucket: Bucket, spec: BucketSpec, now_s: float) -> float:
    # None: a budget, whose units do not come back. Otherwise, each interval brings back one unit.
    if spec.interval_s is None:
        return bucket.used
    return (bucket.full_at_s - now_s) / spec.interval_s


def _clipped(used_units: float, spec: BucketSpec) -> float:
    return used_units if spec.interval_s is None else min(spec.capacity, max(0.0, used_units))


def _free(used_units: float, spec: BucketSpec) -> int:
    # 1e-6: the units are a quotient of times, so 2.9999999 means 3.
    return max(0, math.floor(spec.capacity - _clipped(used_units, spec) + 1e-6))


def _share(used_units: float, kept_units: int, request: LeaseRequest) -> tuple[LeaseGrant, float]:
    spec, units, wait_s = request.spec, _free(used_units, request.spec), 0.0
    used_units = _clipped(used_units, spec)
    if units >= request.needed_units:
        # Leave three quarters of the other units to the other gateways.
        granted_units = request.needed_units + min(
            request.wanted_units - request.needed_units, (units - request.needed_units) // 4
        )
    elif units >= request.min_units:
        granted_units = units
    else:
        granted_units = min(kept_units, units)
        missing_units = used_units + request.min_units - spec.capacity
        # For a budget, a second until the next attempt.
        wait_s = 1.0 if spec.interval_s is None else missing_units * spec.interval_s
    used_units += granted_units
    is_budget = spec.interval_s is None
    overdrawn_units = max(0, round(used_units) - spec.capacity) if is_budget else 0
    return LeaseGrant(granted_units, wait_s, overdrawn_units), used_units


def make_quotas(
    clock: FakeClock | None = None, store: FakeLeaseStore | None = None, **options: Any
) -> Quotas:
    clock = clock or FakeClock()
    return Quotas(Leases(store or FakeLeaseStore(clock), clock), clock, **options)

"""One gateway's view of a shared bucket: its specification and the lease on its units.

Each request to the store states the whole lease: the units spent since the last answer, and the
units to hold from now on. So each request also repairs the effects of an earlier request that was
lost, late or repeated.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from caret.foundation.ids import TenantId
from inference.gateway.rate_limits.gcra import Gcra

LEASE_S: Final = 60.0  # the store reclaims a lease after this time without a request about it
IDLE_S: Final = 10.0  # a lease without any spending for this long is returned
# A gateway stops spending a lease before the store reclaims it, since clocks differ.
_VALID_S: Final = 50.0
_RENEW_S: Final = 25.0  # a lease in use is renewed this long after its last request
_RETRY_S: Final = 1.0  # the wait after a budget's debt is used up while the store is unavailable
_MIN_LEASE_DURATION_S: Final = 2.0  # if a lease lasts less, the next one is larger


@dataclass(frozen=True, slots=True)
class BucketSpec:
    """The identity, capacity and rate of a bucket."""

    kind: str  # label of metrics: tenant, user, key, tokens or spend
    tenant_id: TenantId  # one call can cover all buckets of a tenant
    key: str  # in the store
    capacity: int  # units that may be spent at once, at least 1
    # Time in which a unit comes back; None: never. A bucket with an interval is called a rate here,
    # and one without is called a budget, also if it is a token quota.
    interval_s: float | None
    # A lease has the units that requests have reserved or wait for, and spare units for later ones.
    lease: int  # initial spare units; doubled while leases last less than two seconds
    max_lease: int  # maximum of spare units on one gateway
    # For budgets:
    keep_s: int = 172_800  # the store deletes the bucket after this time without a call
    max_debt: int = 0  # units that may be spent beyond the lease while the store is unavailable


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A gateway's request to the store about one bucket.

    min_units <= needed_units <= wanted_units.
    """

    spec: BucketSpec
    number: int  # grows with each request of a gateway: the store ignores older requests
    since: int  # number of the last request that was answered
    spent_since: int  # units spent since that request; negative: that request reported too many
    min_units: int  # smallest useful lease; if not available, the lease does not grow
    needed_units: int  # granted if the bucket has as many units
    wanted_units: int  # granted if the bucket has plenty of units


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """The store's answer to a LeaseRequest."""

    granted_units: int  # at most `wanted_units`
    # Above 0: `min_units` are not available. Seconds until they are; for a budget, until the next
    # attempt.
    wait_s: float = 0.0
    overdrawn_units: int = 0  # units of a budget that gateways spent beyond its capacity


@dataclass(slots=True, eq=False)
class LeasedBucket:
    spec: BucketSpec
    size: int  # spare units of the next lease
    used_s: float  # last time that a request spent units
    # See LeaseRequest. Before the first answer, a number that no request has. The store may still
    # remember requests of an earlier bucket with the same `spec.key`. They have another `since`, so
    # the store does not take the new bucket's spending for theirs.
    since: int
    granted_units: int = 0  # in the last answer, minus the surplus that was returned after it
    reserved: int = 0  # of a budget: units reserved by requests that have not ended
    spent_since: int = 0  # units spent since the request of the last answer
    # The units of each request that waits for the renewal.
    waiting_units: list[int] = field(default_factory=list)
    overdrawn_units: int = 0  # in the last answer
    is_answered: bool = True  # False: the store may hold more or less than `granted_units`
    requested_s: float = float("-inf")  # time of the last request
    valid_until_s: float = float("-inf")
    renew_at_s: float = float("-inf")
    grown_s: float = float("-inf")  # time at which the lease was last filled up
    denied_until_s: float = float("-inf")
    denied_units: int = 1  # units that the store refuses until `denied_until_s`
    renewal: asyncio.Task[bool] | None = None  # the call to the store in progress
    fallback: Gcra = field(default_factory=Gcra)  # of a rate: this gateway's own count

    @property
    def is_returned(self) -> bool:
        """True if the store has confirmed that only requests in progress hold units."""
        return self.is_answered and self.granted_units <= self.reserved and not self.spent_since

    def remaining_units(self, now_s: float) -> int:
        """Return the leased units that are free; negative if more was spent than leased.

        A lease that is no longer valid counts as zero units.
        """
        if now_s < self.valid_until_s:
            return self.granted_units - self.reserved - self.spent_since
        return -self.reserved - max(0, self.spent_since)

    def is_due(self, now_s: float, units: int = 0) -> bool:
        """Return whether the store must be called for a request that needs `units`."""
        if self.renewal is not None or self.denied_until_s > now_s:
            return False
        return self.remaining_units(now_s) - units < self.size // 2 or now_s >= self.renew_at_s

    def needs_sweep(self, now_s: float) -> bool:
        """Return whether a sweep must return units, or renew the lease of a long request."""
        if self.renewal is not None or now_s - self.used_s <= IDLE_S:
            return False
        return not self.is_returned or (self.reserved > 0 and now_s >= self.renew_at_s)

    def spend(self, units: int, now_s: float, *, is_leased: bool) -> None:
        """Spend units; a budget reserves them until `settle`.

        Units of a rate that are spent without a lease are counted only on this gateway, because
        they come back by themselves.
        """
        self.used_s = now_s
        if self.spec.interval_s is not None:
            self.fallback.spend(units, interval_s=self.spec.interval_s, now_s=now_s)
            self.spent_since += units if is_leased else 0
        else:
            self.reserved += units

    def settle(self, units: int, used_units: int, now_s: float, *, is_leased: bool) -> None:
        """Replace the units of `spend` by the units that were used, which may be more."""
        if self.spec.interval_s is not None:
            self.fallback.spend(used_units - units, interval_s=self.spec.interval_s, now_s=now_s)
            self.spent_since += used_units - units if is_leased else 0
        else:
            self.reserved -= units
            self.spent_since += used_units

    def fallback_wait_s(self, units: int, now_s: float) -> float:
        """Return the wait in seconds by this gateway's own count of the bucket."""
        if self.spec.interval_s is None:
            debt = self.overdrawn_units + units - self.remaining_units(now_s)
            return 0.0 if debt <= self.spec.max_debt else _RETRY_S
        return self.fallback.wait_s(
            min(units, self.spec.capacity),
            capacity=self.spec.capacity,
            interval_s=self.spec.interval_s,
            now_s=now_s,
        )

    def denied_wait_s(self, units: int, now_s: float) -> float:
        """Return the wait in seconds after a refusal by the store, which was for `denied_units`."""
        missing = max(0, units - self.remaining_units(now_s) - self.denied_units)
        return self.denied_until_s - now_s + missing * (self.spec.interval_s or 0.0)

    def apply_spec(self, spec: BucketSpec) -> None:
        """Adopt a changed specification.

        If the bucket is smaller or has another rate, its lease is not spent until the store
        answers. The next request returns the surplus.
        """
        if spec.capacity < self.spec.capacity or spec.interval_s != self.spec.interval_s:
            self.valid_until_s = float("-inf")
        self.spec, self.size = spec, spec.lease
        self.denied_until_s = self.renew_at_s = float("-inf")

    def make_request(self, number: int, now_s: float, *, is_return: bool = False) -> LeaseRequest:
        """Give up the surplus units, and return the request that states the lease from now on.

        Until `on_answered`, the bucket counts as unanswered.
        """
        requested_units = self.reserved + sum(self.waiting_units)
        wanted_units = requested_units if is_return else requested_units + self.size
        self.granted_units = min(self.granted_units, wanted_units + self.spent_since)
        needed_units = max(requested_units, self.granted_units - self.spent_since)
        # The lease is useful if at least the smallest waiting request fits.
        smallest = min(self.waiting_units, default=None)
        min_units = needed_units if smallest is None else self.reserved + smallest
        self.requested_s, self.is_answered = now_s, False
        return LeaseRequest(
            spec=self.spec,
            number=number,
            since=self.since,
            spent_since=self.spent_since,
            min_units=min_units,
            needed_units=needed_units,
            wanted_units=wanted_units,
        )

    def on_answered(self, request: LeaseRequest, grant: LeaseGrant, now_s: float) -> None:
        """Adopt the store's answer to `request`."""
        self.since, self.granted_units, self.is_answered = request.number, grant.granted_units, True
        self.spent_since -= request.spent_since
        self.overdrawn_units = grant.overdrawn_units
        if request.spec is not self.spec:
            return  # the answer is for the previous specification: another request follows
        self.valid_until_s = self.requested_s + _VALID_S
        self.renew_at_s = self.requested_s + _RENEW_S
        self.denied_until_s = now_s + grant.wait_s
        self.denied_units = max(1, request.min_units - self.reserved)
        # The spare units were more than half spent, and the store has filled them up.
        if (
            request.wanted_units - request.needed_units > self.size // 2
            and grant.granted_units == request.wanted_units
        ):
            self._resize()

    def _resize(self) -> None:
        """Adapt the size of the next lease to the duration of the last one."""
        lasted_s, self.grown_s = self.requested_s - self.grown_s, self.requested_s
        if lasted_s < _MIN_LEASE_DURATION_S:
            self.size = min(self.size * 2, self.spec.max_lease)
        elif lasted_s > IDLE_S:
            self.size = max(self.size // 2, self.spec.lease)

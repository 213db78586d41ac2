"""A bucket that all gateways share, as one gateway sees it: its rule, and the lease on its units.

Each request to the store states the whole lease: what was spent since the last answer, and how much
to hold from now on. So the next request repairs whatever a lost, late or repeated one has done.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from inference.gateway.rate_limits.gcra import Gcra

LEASE_S: Final = 60.0  # the store takes a lease back after so long without a request about it
IDLE_S: Final = 10.0  # a lease of which nothing was spent for so long is returned
# A gateway stops spending a lease before the store takes it back: clocks may differ.
_VALID_S: Final = 50.0
_RENEW_S: Final = 25.0
_ASK_AGAIN_S: Final = 1.0  # by then the store may be back
_SHORT_S: Final = 2.0  # a lease that lasted less was too small


@dataclass(frozen=True, slots=True)
class BucketSpec:
    """What fills a bucket."""

    kind: str  # label of metrics: tenant, user, key, tokens or spend
    holder: str  # buckets of one holder can be asked about in one call
    key: str  # in the store
    capacity: int  # units that may be spent at once, at least 1
    interval_s: float | None  # in which a unit comes back; None: never, the bucket is a budget
    lease: int  # spare units to begin with; doubled while leases last less than two seconds
    max_lease: int  # spare units that a gateway holds at most
    # Of a budget:
    keep_s: int = 172_800  # the store forgets it after so long without a call
    max_debt: int = 0  # units that may be spent beyond the lease while the store is away


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """What a gateway tells the store about one bucket. Units; least <= need <= want."""

    spec: BucketSpec
    number: int  # grows with each request of a gateway: the store ignores one that is not newer
    since: int  # number of the last request that was answered
    settled: int  # spent since that request was made; below 0: it had told too much
    least: int  # smallest useful lease; if it cannot be granted, nothing beyond the present one is
    need: int  # lease that is granted as far as the pool has units
    want: int  # lease that is granted if the pool has plenty


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    held: int  # units, at most what was wanted
    wait_s: float = 0.0  # above 0: until the least could be held
    overdrawn: int = 0  # units of a budget that gateways have spent beyond its capacity


@dataclass(slots=True, eq=False)
class LeasedBucket:
    spec: BucketSpec
    size: int  # spare units of the next lease
    used_s: float  # when a request last spent of it
    since: int  # see LeaseRequest; before the first answer a number of the bucket's own
    held: int = 0  # by the last answer
    reserved: int = 0  # of a budget: by requests that have not ended
    settled: int = 0  # spent since the request of the last answer
    waiting: list[int] = field(default_factory=list)  # units of requests that wait for the renewal
    overdrawn: int = 0  # by the last answer
    is_answered: bool = True  # the last request; the store may hold more or less than `held`
    requested_s: float = float("-inf")  # when the last request was made
    valid_until_s: float = float("-inf")
    renew_at_s: float = float("-inf")
    grown_s: float = float("-inf")  # when the lease was last filled up
    denied_until_s: float = float("-inf")
    denied_units: int = 1  # until then
    renewal: asyncio.Task[bool] | None = None
    fallback: Gcra = field(default_factory=Gcra)  # of a rate: what this gateway has let through

    @property
    def is_returned(self) -> bool:
        """The store has acknowledged that nothing is held but for requests that have not ended."""
        return self.is_answered and self.held <= self.reserved and not self.settled

    def remaining_units(self, now_s: float) -> int:
        """Leased and not yet spent or reserved; below 0: spent beyond the lease."""
        if now_s < self.valid_until_s:
            return self.held - self.reserved - self.settled
        return -self.reserved - max(0, self.settled)

    def is_due(self, now_s: float, units: int = 0) -> bool:
        """Whether the store should be asked, by a request for so many units."""
        if self.renewal is not None or self.denied_until_s > now_s:
            return False
        return self.remaining_units(now_s) - units < self.size // 2 or now_s >= self.renew_at_s

    def is_idle(self, now_s: float) -> bool:
        """Whether there is something to return, or to keep for a request that takes long."""
        if self.renewal is not None or now_s - self.used_s <= IDLE_S:
            return False
        return not self.is_returned or (self.reserved > 0 and now_s >= self.renew_at_s)

    def spend(self, units: int, now_s: float, *, is_leased: bool) -> None:
        """A budget reserves until `settle`. What a rate lets through without a lease is counted
        here alone, because it comes back by itself."""
        self.used_s = now_s
        if self.spec.interval_s is not None:
            self.fallback.spend(units, interval_s=self.spec.interval_s, now_s=now_s)
            self.settled += units if is_leased else 0
        else:
            self.reserved += units

    def settle(self, units: int, used: int, now_s: float, *, is_leased: bool) -> None:
        """Of the units of `spend` so many were used; may be more."""
        if self.spec.interval_s is not None:
            self.fallback.spend(used - units, interval_s=self.spec.interval_s, now_s=now_s)
            self.settled += used - units if is_leased else 0
        else:
            self.reserved -= units
            self.settled += used

    def fallback_wait_s(self, units: int, now_s: float) -> float:
        """How long this gateway's own count of the bucket would have so many units wait."""
        if self.spec.interval_s is None:
            debt = self.overdrawn + units - self.remaining_units(now_s)
            return 0.0 if debt <= self.spec.max_debt else _ASK_AGAIN_S
        return self.fallback.wait_s(
            min(units, self.spec.capacity),
            capacity=self.spec.capacity,
            interval_s=self.spec.interval_s,
            now_s=now_s,
        )

    def denied_wait_s(self, units: int, now_s: float) -> float:
        """The store's answer was for `denied_units`."""
        missing = max(0, units - self.remaining_units(now_s) - self.denied_units)
        return self.denied_until_s - now_s + missing * (self.spec.interval_s or 0.0)

    def apply_spec(self, rule: BucketSpec) -> None:
        """The policy has changed. A lease on a smaller bucket is not spent before the store has
        seen it; what it has too much goes back with that request."""
        if rule.capacity < self.spec.capacity or rule.interval_s != self.spec.interval_s:
            self.valid_until_s = float("-inf")
        self.spec, self.size = rule, rule.lease
        self.denied_until_s = self.renew_at_s = float("-inf")

    def make_request(self, number: int, now_s: float, *, is_return: bool = False) -> LeaseRequest:
        """State the lease from now on; what it has too much is not spent from now on."""
        wanted = self.reserved + sum(self.waiting)
        want = wanted if is_return else wanted + self.size
        self.held = min(self.held, want + self.settled)
        need = max(wanted, self.held - self.settled)
        least = self.reserved + min(self.waiting) if self.waiting else need
        self.requested_s, self.is_answered = now_s, False
        return LeaseRequest(
            spec=self.spec,
            number=number,
            since=self.since,
            settled=self.settled,
            least=least,
            need=need,
            want=want,
        )

    def on_answered(self, request: LeaseRequest, grant: LeaseGrant, now_s: float) -> None:
        self.since, self.held, self.is_answered = request.number, grant.held, True
        self.settled -= request.settled
        self.overdrawn = grant.overdrawn
        if request.spec is not self.spec:
            return  # the answer is about what the policy was: `apply_spec` has asked for another
        self.valid_until_s = self.requested_s + _VALID_S
        self.renew_at_s = self.requested_s + _RENEW_S
        self.denied_until_s = now_s + grant.wait_s
        self.denied_units = max(1, request.least - self.reserved)
        if request.want - request.need > self.size // 2 and grant.held == request.want:
            self._resize()

    def _resize(self) -> None:
        """By how long the last lease lasted, now that there is a new one."""
        lasted_s, self.grown_s = self.requested_s - self.grown_s, self.requested_s
        if lasted_s < _SHORT_S:
            self.size = min(self.size * 2, self.spec.max_lease)
        elif lasted_s > IDLE_S:
            self.size = max(self.size // 2, self.spec.lease)

"""A bucket that all gateways share, as one of them sees it: its rule, and the lease it holds."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from inference.gateway.gcra import Gcra

IDLE_S: Final = 10.0  # what nobody uses for so long is given back
_ASK_AGAIN_S: Final = 1.0  # by then the store may be back
_SHORT_S: Final = 2.0  # a lease that lasted less was too small


@dataclass(frozen=True, slots=True)
class Rule:
    """What fills a bucket."""

    kind: str  # in the numbers: tenant, user, key, tokens or spend
    holder: str  # buckets of one holder can be asked about in one call
    key: str  # in the store
    capacity: int  # units that may be spent at once, at least 1
    interval_s: float | None  # in which a unit comes back; None: never, the key is for one day
    lease: int  # units to begin with; it doubles while leases last less than two seconds
    max_lease: int
    # Of what never comes back:
    keep_s: int = 172_800  # the store forgets it after so long without a call
    max_debt: int | None = None  # that is let through while the store is away; None: any


@dataclass(slots=True, eq=False)
class Bucket:
    rule: Rule
    size: int  # of the next lease
    used_s: float
    left: int = 0  # leased and not yet spent; below 0: spent while the store was away
    wanted: int = 0  # by those who wait for the renewal
    taken_s: float = float("-inf")
    refused_until_s: float = float("-inf")
    renewal: asyncio.Task[None] | None = None
    alone: Gcra = field(default_factory=Gcra)  # what this gateway has let through

    def spend(self, units: int, now_s: float, *, is_leased: bool) -> None:
        """Below 0 gives back. What never comes back is a debt where it was not leased."""
        if is_leased or self.rule.interval_s is None:
            self.left -= units
        if self.rule.interval_s is not None:
            self.alone.spend(units, interval_s=self.rule.interval_s, now_s=now_s)

    def alone_wait_s(self, units: int, now_s: float) -> float:
        """How long this gateway's own count of the bucket would have so many units wait."""
        if self.rule.interval_s is None:
            max_debt = self.rule.max_debt
            return 0.0 if max_debt is None or units - self.left <= max_debt else _ASK_AGAIN_S
        return self.alone.wait_s(
            min(units, self.rule.capacity),
            capacity=self.rule.capacity,
            interval_s=self.rule.interval_s,
            now_s=now_s,
        )

    def follow(self, rule: Rule, now_s: float) -> None:
        """The policy has changed."""
        self.rule, self.size = rule, rule.lease
        self.left, self.refused_until_s = min(self.left, rule.capacity), now_s

    def resize(self, now_s: float) -> None:
        """By how long the last lease lasted."""
        lasted_s = now_s - self.taken_s
        if lasted_s < _SHORT_S:
            self.size = min(self.size * 2, self.rule.max_lease)
        elif lasted_s > IDLE_S:
            self.size = max(self.size // 2, self.rule.lease)
        self.taken_s = now_s

    def next_lease(self) -> int:
        """Enough for all that wait and, beyond debts, for a while; at least 1."""
        return max(1, self.wanted, self.size) - min(self.left, 0)

    def refused_wait_s(self, units: int, now_s: float) -> float:
        """The store's answer was for one unit."""
        missing = units - self.left - 1
        return self.refused_until_s - now_s + missing * (self.rule.interval_s or 0.0)

"""What a thousand accepted tokens cost: the hours of replicas over what people took. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from tenants.fleet.pools.daily_usage import ByPool, PoolCounts

_SECONDS_PER_HOUR: Final = 3_600


@dataclass(frozen=True, slots=True)
class CostRow:
    pool: str
    counts: PoolCounts
    replica_hours: float
    cost_cents: float

    @property
    def cents_per_1000_accepted(self) -> float | None:
        """None: nothing was accepted."""
        accepted = self.counts.accepted_tokens
        return self.cost_cents / accepted * 1_000 if accepted else None


@dataclass(frozen=True, slots=True)
class Cost:
    rows: list[CostRow]  # by pool
    total: CostRow
    num_days: int
    num_measured: int  # days whose replicas were noted; for the others those of now are taken


def cost_of(
    days: Mapping[date, ByPool],
    replica_seconds: Mapping[date, Mapping[str, int]],
    *,
    seconds_a_day: Mapping[str, int],
    hour_cents: float,
    num_days: int,
) -> Cost:
    """`seconds_a_day`: for days of which it was not noted. A day on which nothing was asked, and
    nothing noted, is taken to be before the installation and costs nothing."""
    counts: ByPool = {}
    seconds: dict[str, float] = {}
    for day in days.keys() | replica_seconds.keys():
        for pool, found in days.get(day, {}).items():
            counts[pool] = counts.get(pool, PoolCounts()).plus(found)
        for pool, more in replica_seconds.get(day, seconds_a_day).items():
            seconds[pool] = seconds.get(pool, 0) + more
    rows = [
        _row(pool, counts.get(pool, PoolCounts()), seconds.get(pool, 0), hour_cents)
        # "": refused or shed before there was a pool; no replica did anything for it.
        for pool in sorted((counts.keys() | seconds.keys()) - {""})
    ]
    total = PoolCounts()
    for row in rows:
        total = total.plus(row.counts)
    return Cost(
        rows=rows,
        total=_row("", total, sum(seconds.values()), hour_cents),
        num_days=num_days,
        num_measured=len(replica_seconds),
    )


def _row(pool: str, counts: PoolCounts, seconds: float, hour_cents: float) -> CostRow:
    hours = seconds / _SECONDS_PER_HOUR
    return CostRow(pool, counts, hours, hours * hour_cents)

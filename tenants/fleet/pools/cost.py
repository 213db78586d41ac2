"""The cost of 1,000 accepted tokens, for each pool. Pure.

The cost of a pool is the price of its replica hours. It is divided by the pool's accepted tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from tenants.fleet.pools.daily_usage import ByPool, PoolCounts

_SECONDS_PER_HOUR: Final = 3_600


@dataclass(frozen=True, slots=True)
class CostRow:
    pool: str  # "": all pools
    counts: PoolCounts
    replica_hours: float
    cost_cents: float

    @property
    def cents_per_1000_accepted(self) -> float | None:
        """The cost of 1,000 accepted tokens in cents; None: no accepted tokens."""
        accepted = self.counts.accepted_tokens
        return self.cost_cents / accepted * 1_000 if accepted else None


@dataclass(frozen=True, slots=True)
class FleetCost:
    rows: list[CostRow]  # by pool
    total: CostRow
    num_days: int  # length of the period
    # Days with measured replica seconds. Other days with requests are computed with the current
    # replicas.
    num_measured: int


def compute_fleet_cost(
    usage_by_day: Mapping[date, ByPool],
    replica_seconds: Mapping[date, Mapping[str, int]],
    *,
    seconds_a_day: Mapping[str, int],
    hour_cents: float,
    num_days: int,
) -> FleetCost:
    """Compute the cost of each pool.

    `replica_seconds` are the measured replica seconds by day and pool. For a day with requests but
    without measurements, `seconds_a_day` (by pool) is used. A day with neither costs nothing,
    because it is assumed to precede the installation. `hour_cents` is the price of a replica for an
    hour.
    """
    counts: ByPool = {}
    seconds: dict[str, float] = {}
    for day in usage_by_day.keys() | replica_seconds.keys():
        for pool, pool_counts in usage_by_day.get(day, {}).items():
            counts[pool] = counts.get(pool, PoolCounts()).plus(pool_counts)
        for pool, pool_seconds in replica_seconds.get(day, seconds_a_day).items():
            seconds[pool] = seconds.get(pool, 0) + pool_seconds
    rows = [
        _to_row(pool, counts.get(pool, PoolCounts()), seconds.get(pool, 0), hour_cents)
        # Pool "": requests that were rejected or shed before a pool was chosen. No replica served
        # them.
        for pool in sorted((counts.keys() | seconds.keys()) - {""})
    ]
    total = PoolCounts()
    for row in rows:
        total = total.plus(row.counts)
    return FleetCost(
        rows=rows,
        total=_to_row("", total, sum(seconds.values()), hour_cents),
        num_days=num_days,
        num_measured=len(replica_seconds),
    )


def _to_row(pool: str, counts: PoolCounts, seconds: float, hour_cents: float) -> CostRow:
    hours = seconds / _SECONDS_PER_HOUR
    return CostRow(pool, counts, hours, hours * hour_cents)

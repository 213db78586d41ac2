"""The installation at a glance, from what its gateways say: what operators' pages begin with."""

from dataclasses import dataclass
from datetime import datetime

from tenants.base.redis_connection import connect
from tenants.fleet.pools.gateway_scraper import Reading, read_gateways
from tenants.fleet.pools.metric_samples import together
from tenants.fleet.pools.pool_status import (
    FirstToken,
    PoolState,
    accepted_share,
    cancellation,
    first_tokens,
    hit_rate,
    members_of,
    places_of,
    pools_of,
)
from tenants.fleet.pools.recent_scrapes import Lately, lately


@dataclass(frozen=True, slots=True)
class Installation:
    readings: list[Reading]
    lately: Lately
    pools: list[PoolState]

    @property
    def answering(self) -> list[Reading]:
        return [reading for reading in self.readings if reading.samples is not None]

    @property
    def silent(self) -> list[Reading]:
        return [reading for reading in self.readings if reading.samples is None]


@dataclass(frozen=True, slots=True)
class OnCall:
    """The five figures in the order in which they are looked at; None: there was nothing."""

    first_tokens: list[FirstToken]
    cancellation: float | None
    hit_rate: float | None
    acceptance: float | None
    load: float | None  # of the pool that has most to do, as a share of what it takes on
    busiest: str | None  # its name
    num_waiting: int  # requests in engines' queues
    kv_usage: float | None  # of the fullest replica


def read_installation(*, now: datetime) -> Installation:
    """Asks all gateways, and Redis for what was so a quarter of an hour ago."""
    readings = read_gateways()
    since = lately(connect(), readings, now_s=now.timestamp())
    return Installation(readings, since, pools_of(readings, since.counted))


def members_now(readings: list[Reading]) -> dict[str, frozenset[str]]:
    """The replicas of each pool, as the gateways that answer know them."""
    return members_of(together(each.samples for each in readings if each.samples is not None))


def places_now(readings: list[Reading]) -> dict[str, tuple[str, ...]]:
    """Where replicas may be added to each pool, likewise."""
    return places_of(together(each.samples for each in readings if each.samples is not None))


def on_call(installation: Installation) -> OnCall:
    counted, pools = installation.lately.counted, installation.pools
    busiest = max(pools, key=lambda pool: pool.load, default=None)
    replicas = {replica.name: replica for pool in pools for replica in pool.replicas}.values()
    usages = [replica.kv_usage for replica in replicas if replica.kv_usage is not None]
    return OnCall(
        first_tokens=first_tokens(counted),
        cancellation=cancellation(counted),
        hit_rate=hit_rate(counted),
        acceptance=accepted_share(counted),
        load=None if busiest is None else busiest.load,
        busiest=None if busiest is None else busiest.name,
        num_waiting=int(sum(replica.waiting or 0 for replica in replicas)),
        kv_usage=max(usages, default=None),
    )

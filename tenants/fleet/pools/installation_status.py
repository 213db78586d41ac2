"""The installation at a glance, from what its gateways say: what operators' pages begin with."""

from dataclasses import dataclass
from datetime import datetime

from tenants.base.redis_connection import connect
from tenants.fleet.pools.gateway_scraper import Scrape, scrape_gateways
from tenants.fleet.pools.metric_samples import merge_samples
from tenants.fleet.pools.pool_status import (
    FirstToken,
    PoolStatus,
    accepted_share,
    cancellation,
    first_tokens,
    hit_rate,
    members_of,
    places_of,
    pools_of,
)
from tenants.fleet.pools.recent_scrapes import RecentScrapes, lately


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    readings: list[Scrape]
    recent: RecentScrapes
    pools: list[PoolStatus]

    @property
    def reachable(self) -> list[Scrape]:
        return [reading for reading in self.readings if reading.samples is not None]

    @property
    def unreachable(self) -> list[Scrape]:
        return [reading for reading in self.readings if reading.samples is None]


@dataclass(frozen=True, slots=True)
class KeyFigures:
    """The five figures in the order in which they are looked at; None: there was nothing."""

    first_tokens: list[FirstToken]
    cancellation: float | None
    hit_rate: float | None
    acceptance: float | None
    load: float | None  # of the pool that has most to do, as a share of what it takes on
    busiest: str | None  # its name
    num_waiting: int  # requests in engines' queues
    kv_usage: float | None  # of the fullest replica


def read_installation(*, now: datetime) -> InstallationStatus:
    """Asks all gateways, and Redis for what was so a quarter of an hour ago."""
    readings = scrape_gateways()
    since = lately(connect(), readings, now_s=now.timestamp())
    return InstallationStatus(readings, since, pools_of(readings, since.counted))


def replicas_by_pool(readings: list[Scrape]) -> dict[str, frozenset[str]]:
    """The replicas of each pool, as the gateways that answer know them."""
    return members_of(merge_samples(each.samples for each in readings if each.samples is not None))


def allowed_hosts_by_pool(readings: list[Scrape]) -> dict[str, tuple[str, ...]]:
    """Where replicas may be added to each pool, likewise."""
    return places_of(merge_samples(each.samples for each in readings if each.samples is not None))


def key_figures(installation: InstallationStatus) -> KeyFigures:
    counted, pools = installation.recent.counted, installation.pools
    busiest = max(pools, key=lambda pool: pool.load, default=None)
    replicas = {replica.name: replica for pool in pools for replica in pool.replicas}.values()
    usages = [replica.kv_usage for replica in replicas if replica.kv_usage is not None]
    return KeyFigures(
        first_tokens=first_tokens(counted),
        cancellation=cancellation(counted),
        hit_rate=hit_rate(counted),
        acceptance=accepted_share(counted),
        load=None if busiest is None else busiest.load,
        busiest=None if busiest is None else busiest.name,
        num_waiting=int(sum(replica.waiting or 0 for replica in replicas)),
        kv_usage=max(usages, default=None),
    )

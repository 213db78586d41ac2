"""Status of the installation from the gateways' metrics, for the operators' overview."""

from dataclasses import dataclass
from datetime import datetime

from tenants.base.redis_connection import connect
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
from tenants.fleet.pools.scraping.gateway_scraper import Scrape, scrape_gateways
from tenants.fleet.pools.scraping.metric_samples import merge_samples
from tenants.fleet.pools.scraping.recent_scrapes import RecentScrapes, lately


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
    """The five key figures in the order of the page. None: no data."""

    first_tokens: list[FirstToken]
    cancellation: float | None
    hit_rate: float | None
    acceptance: float | None
    load: float | None  # of the busiest pool, as a share of its concurrency limit
    busiest: str | None  # the busiest pool's name
    num_waiting: int  # requests waiting in the engines
    kv_usage: float | None  # of the fullest replica


def read_installation(*, now: datetime) -> InstallationStatus:
    """Read the status from all gateways, and from Redis their counts of 15 minutes ago."""
    readings = scrape_gateways()
    since = lately(connect(), readings, now_s=now.timestamp())
    return InstallationStatus(readings, since, pools_of(readings, since.counters))


def replicas_by_pool(readings: list[Scrape]) -> dict[str, frozenset[str]]:
    """Return the replicas of each pool, as the gateways that answer report them."""
    return members_of(merge_samples(each.samples for each in readings if each.samples is not None))


def allowed_hosts_by_pool(readings: list[Scrape]) -> dict[str, tuple[str, ...]]:
    """Return the hosts permitted for added replicas by pool, as the gateways report them."""
    return places_of(merge_samples(each.samples for each in readings if each.samples is not None))


def key_figures(installation: InstallationStatus) -> KeyFigures:
    counters, pools = installation.recent.counters, installation.pools
    busiest = max(pools, key=lambda pool: pool.load, default=None)
    replicas = {replica.name: replica for pool in pools for replica in pool.replicas}.values()
    usages = [replica.kv_usage for replica in replicas if replica.kv_usage is not None]
    return KeyFigures(
        first_tokens=first_tokens(counters),
        cancellation=cancellation(counters),
        hit_rate=hit_rate(counters),
        acceptance=accepted_share(counters),
        load=None if busiest is None else busiest.load,
        busiest=None if busiest is None else busiest.name,
        num_waiting=int(sum(replica.waiting or 0 for replica in replicas)),
        kv_usage=max(usages, default=None),
    )

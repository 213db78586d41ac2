"""Status of the installation, read from the gateways' metrics.

The operators' overview shows it. The pages of a policy use the recorded capabilities to show which
fields are not enforced (tenants.policy.availability).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.pools.pool_status import (
    FirstToken,
    PoolStatus,
    build_pool_statuses,
    compute_accepted_share,
    compute_cancellation_rate,
    compute_hit_rate,
    list_allowed_hosts_by_pool,
    list_first_tokens,
    list_replicas_by_pool,
)
from tenants.fleet.pools.scraping.gateway_scraper import Scrape, scrape_gateways
from tenants.fleet.pools.scraping.metric_samples import MetricSamples, merge_samples
from tenants.fleet.pools.scraping.recent_scrapes import RecentScrapes, count_recent
from tenants.models import CapabilityChange
from tenants.policy.availability.enforcement import REGION_PREFIX, Capability

_MAX_NAME_CHARS: Final = 64  # of the column `capability`


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    scrapes: list[Scrape]  # one for each gateway
    recent: RecentScrapes
    pools: list[PoolStatus]  # sorted by name

    @property
    def reachable(self) -> list[Scrape]:
        return [scrape for scrape in self.scrapes if scrape.samples is not None]

    @property
    def unreachable(self) -> list[Scrape]:
        return [scrape for scrape in self.scrapes if scrape.samples is None]


@dataclass(frozen=True, slots=True)
class KeyFigures:
    """The key figures of the operators' overview. None: no data."""

    first_tokens: list[FirstToken]
    cancellation: float | None  # share of completions that were cancelled or superseded
    hit_rate: float | None  # share of prompt tokens that were in the prefix cache
    acceptance: float | None  # share of shown suggestions that were accepted
    load: float | None  # of the busiest pool, as a share of its concurrency limit
    busiest: str | None  # the busiest pool's name
    num_waiting: int  # requests waiting in the engines
    kv_usage: float | None  # share of the KV cache in use at the fullest replica


def read_installation_status(*, now: datetime) -> InstallationStatus:
    """Scrape all gateways, and return their status with the counts of the last minutes."""
    scrapes = scrape_gateways()
    recent = count_recent(connect_to_redis(), scrapes, now_s=now.timestamp())
    return InstallationStatus(scrapes, recent, build_pool_statuses(scrapes, recent.counters))


def collect_replicas_by_pool(scrapes: list[Scrape]) -> dict[str, frozenset[str]]:
    """Return the replicas of each pool that at least one reachable gateway reports."""
    return list_replicas_by_pool(
        merge_samples(scrape.samples for scrape in scrapes if scrape.samples is not None)
    )


def collect_allowed_hosts_by_pool(scrapes: list[Scrape]) -> dict[str, tuple[str, ...]]:
    """Return by pool the hosts where replicas may be added, according to any reachable gateway."""
    return list_allowed_hosts_by_pool(
        merge_samples(scrape.samples for scrape in scrapes if scrape.samples is not None)
    )


def compute_key_figures(installation: InstallationStatus) -> KeyFigures:
    counters, pools = installation.recent.counters, installation.pools
    busiest = max(pools, key=lambda pool: pool.load, default=None)
    replicas = {replica.name: replica for pool in pools for replica in pool.replicas}.values()
    usages = [replica.kv_usage for replica in replicas if replica.kv_usage is not None]
    return KeyFigures(
        first_tokens=list_first_tokens(counters),
        cancellation=compute_cancellation_rate(counters),
        hit_rate=compute_hit_rate(counters),
        acceptance=compute_accepted_share(counters),
        load=None if busiest is None else busiest.load,
        busiest=None if busiest is None else busiest.name,
        num_waiting=int(sum(replica.waiting or 0 for replica in replicas)),
        kv_usage=max(usages, default=None),
    )


def record_capabilities(scrapes: Iterable[Scrape], *, now: datetime) -> None:
    """Record the capabilities that have changed. Record nothing if no gateway responds."""
    scrape_list = list(scrapes)
    reports = [scrape.samples for scrape in scrape_list if scrape.samples is not None]
    if not reports:
        return
    # The newest change of each capability.
    rows = CapabilityChange.objects.order_by("capability", "-since").distinct("capability")
    current = dict(rows.values_list("capability", "is_available"))
    capabilities = find_capabilities(reports)
    # If a gateway does not respond, it may be in the missing region. So regions are recorded as
    # unavailable only if all gateways respond.
    if len(reports) == len(scrape_list):
        missing_names = (
            name for name in current if name.startswith(REGION_PREFIX) and name not in capabilities
        )
        capabilities |= dict.fromkeys(missing_names, False)
    CapabilityChange.objects.bulk_create(
        [
            CapabilityChange(capability=name, is_available=is_available, since=now)
            for name, is_available in capabilities.items()
            if current.get(name) is not is_available
        ],
        ignore_conflicts=True,  # another worker may have recorded the same change
    )


def find_capabilities(reports: Iterable[MetricSamples]) -> dict[str, bool]:
    """Return whether each capability is available, and True for each region with a gateway. Pure.

    A capability is available if no gateway reports it as unavailable. A region's name has
    REGION_PREFIX before it.
    """
    capabilities: dict[str, bool] = {}
    for samples in reports:
        for labels, value in samples.all_values("caret_gateway_capability"):
            name = labels["capability"]
            if name in set(Capability):
                capabilities[name] = capabilities.get(name, True) and bool(value)
        for labels, _ in samples.all_values("caret_gateway_region"):
            capabilities[f"{REGION_PREFIX}{labels['region']}"[:_MAX_NAME_CHARS]] = True
    return capabilities

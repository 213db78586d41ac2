"""Status of pools and replicas, combined from the gateways' metrics. Pure.

The counts and limits of all gateways are added up. If several gateways have read the same value
from an engine, the highest is used. The accepted share of drafted tokens is averaged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from caret.contracts.latency_targets import FIRST_TOKEN_TARGETS_MS
from caret.contracts.policy import Mode, Tier
from tenants.fleet.pools.scraping.gateway_scraper import Scrape
from tenants.fleet.pools.scraping.metric_samples import (
    MetricSamples,
    compute_quantile_s,
    merge_samples,
)

_WARM_UP: Final = "warm_up"  # the label `mode` of warm-ups in gateways' metrics
_OPEN: Final = ("open", "half_open")  # states in which a circuit breaker stops or limits requests


@dataclass(frozen=True, slots=True)
class FirstToken:
    """Latencies until the first token, for the completions of a mode."""

    mode: Mode
    p50_ms: float
    p99_ms: float
    target_ms: float  # for the 99th percentile
    count: int  # completions with a first token

    @property
    def is_over(self) -> bool:
        """Return True if the 99th percentile exceeds the target."""
        return self.p99_ms > self.target_ms


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    name: str  # host:port
    is_up: bool | None  # whether a gateway can read its metrics; None: no gateway has tried yet
    num_gateways_open: int  # gateways whose circuit breaker for this replica is open or half open
    num_gateways_ejected: int  # gateways that have ejected it because its first tokens are late
    # The longest time until an open circuit breaker allows a trial request; None: none is open.
    cooldown_s: float | None
    is_drained: bool  # according to any gateway
    num_in_flight: int  # requests in flight, of all gateways
    # As the engine reports them. None: not reported.
    running: float | None  # requests
    waiting: float | None  # requests
    kv_usage: float | None  # share of the KV cache in use, 0 to 1
    hit_rate: float | None  # of prompt tokens, recently; None: no lookups
    speculation: str  # method of speculative decoding, such as ngram; "": none

    @property
    def is_healthy(self) -> bool:
        return self.is_up is not False and not (self.num_gateways_open or self.num_gateways_ejected)


@dataclass(frozen=True, slots=True)
class RejectedReplica:
    """A replica that does not match its pool. Gateways that reject it send it no requests."""

    name: str  # host:port
    reason: str  # as gateways name it, such as model or version
    actual: str  # the replica's value, for example the name of its model
    expected: str  # the value that the pool requires
    num_gateways: int  # gateways that reject it


@dataclass(frozen=True, slots=True)
class PoolStatus:
    name: str
    tier: Tier
    model: str
    replicas: list[ReplicaStatus]
    rejected: list[RejectedReplica]
    allowed_replica_hosts: tuple[str, ...]  # networks and host names where replicas may be added
    num_in_flight: int  # requests in flight, of all gateways
    limit: float  # learned limit of requests in flight, of all gateways together
    hit_rate: float | None  # of prompt tokens, recently; None: unknown
    first_tokens: list[FirstToken]  # of the modes with requests
    shed: dict[str, int]  # requests shed recently, by trigger, most frequent first
    # Accepted share of the drafted tokens (0 to 1), by language, averaged over the gateways.
    acceptance: dict[str, float]
    # Languages that at least one gateway sends to the replicas without speculation.
    fallback_languages: frozenset[str]

    @property
    def has_speculation(self) -> bool:
        return any(replica.speculation for replica in self.replicas)

    @property
    def load(self) -> float:
        """Share of the concurrency limit in use; may exceed 1."""
        return self.num_in_flight / self.limit if self.limit else 0.0


def build_pool_statuses(scrapes: Iterable[Scrape], counters: MetricSamples) -> list[PoolStatus]:
    """Return the pools, sorted by name. `counters` are the recent counts of all gateways."""
    samples_by_gateway = [scrape.samples for scrape in scrapes if scrape.samples is not None]
    merged_samples = merge_samples(samples_by_gateway)
    labels_by_pool = {
        labels["pool"]: labels for labels, _ in merged_samples.all_values("caret_pool")
    }
    replicas_by_pool = list_replicas_by_pool(merged_samples)
    allowed_hosts = list_allowed_hosts_by_pool(merged_samples)
    replicas = {
        name: _build_replica_status(name, samples_by_gateway, counters)
        for name in {replica for names in replicas_by_pool.values() for replica in names}
    }
    return [
        PoolStatus(
            name=pool,
            tier=Tier(labels_by_pool[pool]["tier"]),
            model=labels_by_pool[pool]["model"],
            replicas=[replicas[name] for name in sorted(replicas_by_pool.get(pool, ()))],
            rejected=_list_rejected_replicas(merged_samples, pool),
            allowed_replica_hosts=allowed_hosts.get(pool, ()),
            num_in_flight=int(merged_samples.sum("caret_pool_requests_in_flight", pool=pool)),
            limit=merged_samples.sum("caret_pool_concurrency_limit", pool=pool),
            hit_rate=compute_hit_rate(counters, pool=pool),
            first_tokens=list_first_tokens(counters, pool=pool),
            shed=_count_shed_requests(counters, pool),
            acceptance=_read_acceptance(samples_by_gateway, pool),
            fallback_languages=frozenset(
                labels["language"]
                for labels, num_gateways in merged_samples.all_values(
                    "caret_speculation_fallback", pool=pool
                )
                if num_gateways
            ),
        )
        for pool in sorted(labels_by_pool)
    ]


def list_replicas_by_pool(samples: MetricSamples) -> dict[str, frozenset[str]]:
    """Return the replicas of each pool that at least one gateway reports."""
    names_by_pool: dict[str, set[str]] = {}
    for labels, _ in samples.all_values("caret_pool_replica_info"):
        names_by_pool.setdefault(labels["pool"], set()).add(labels["replica"])
    return {pool: frozenset(names) for pool, names in names_by_pool.items()}


def list_allowed_hosts_by_pool(samples: MetricSamples) -> dict[str, tuple[str, ...]]:
    """Return by pool the hosts where replicas may be added, according to any gateway.

    Pools without such hosts are left out.
    """
    hosts_by_pool: dict[str, set[str]] = {}
    for labels, _ in samples.all_values("caret_pool_allowed_replica_hosts"):
        hosts_by_pool.setdefault(labels["pool"], set()).add(labels["hosts"])
    return {pool: tuple(sorted(hosts)) for pool, hosts in hosts_by_pool.items()}


def list_first_tokens(counters: MetricSamples, **labels: str) -> list[FirstToken]:
    """Return the first-token latencies of each mode in the samples with these labels.

    Modes without a first token are left out.
    """
    return [
        first_token
        for mode in Mode
        if (first_token := _compute_first_token(counters, mode, labels)) is not None
    ]


def compute_hit_rate(counters: MetricSamples, **labels: str) -> float | None:
    """Return the cached share of prompt tokens, without warm-ups; None: no engine reported it.

    Only prompts whose engine reported the cached tokens are counted.
    """
    num_prompt_tokens = sum_without_warm_ups(
        counters, "caret_prompt_tokens_with_cache_info_total", labels
    )
    num_cached_tokens = sum_without_warm_ups(counters, "caret_cached_tokens_total", labels)
    return num_cached_tokens / num_prompt_tokens if num_prompt_tokens else None


def sum_without_warm_ups(counters: MetricSamples, name: str, labels: Mapping[str, str]) -> float:
    """Return the sum of a counter without warm-ups, which are not requests of users."""
    return counters.sum(name, **labels) - counters.sum(name, mode=_WARM_UP, **labels)


def compute_cancellation_rate(counters: MetricSamples) -> float | None:
    """Return the share of completions that were cancelled or superseded; None: no completions."""
    num_completions = counters.sum("caret_completions_total")
    num_cancelled = sum(
        counters.sum("caret_completions_total", finish_reason=finish_reason)
        for finish_reason in ("cancelled", "superseded")
    )
    return num_cancelled / num_completions if num_completions else None


def compute_accepted_share(counters: MetricSamples) -> float | None:
    """Return the share of shown suggestions that were accepted; None: none was shown.

    Partially accepted suggestions count as accepted.
    """
    num_shown = counters.sum("caret_outcomes_total", event="shown")
    num_accepted = sum(
        counters.sum("caret_outcomes_total", event=event)
        for event in ("accepted", "partially_accepted")
    )
    # At most 1: clients may report an acceptance without having reported the display.
    return min(1.0, num_accepted / num_shown) if num_shown else None


def _compute_first_token(
    counters: MetricSamples, mode: Mode, labels: Mapping[str, str]
) -> FirstToken | None:
    name = "caret_first_token_seconds"
    # Buckets are cumulative, so the bucket without an upper bound counts all completions.
    count = counters.sum(f"{name}_bucket", mode=mode, le="+Inf", **labels)
    p50_s = compute_quantile_s(counters, name, 0.5, mode=mode, **labels)
    p99_s = compute_quantile_s(counters, name, 0.99, mode=mode, **labels)
    if p50_s is None or p99_s is None:
        return None
    return FirstToken(mode, p50_s * 1000, p99_s * 1000, FIRST_TOKEN_TARGETS_MS[mode], int(count))


def _build_replica_status(
    name: str, samples_by_gateway: list[MetricSamples], counters: MetricSamples
) -> ReplicaStatus:
    def highest(metric: str) -> float | None:
        values = [samples.max(metric, replica=name) for samples in samples_by_gateway]
        return max((value for value in values if value is not None), default=None)

    # `counters` has the sums of what all gateways have read. The sums count the same lookup several
    # times, but their ratio is right.
    num_queries = counters.max("caret_engine_prefix_cache_queries_total", replica=name)
    num_hits = counters.max("caret_engine_prefix_cache_hits_total", replica=name)
    up = highest("caret_engine_up")
    return ReplicaStatus(
        name=name,
        is_up=None if up is None else bool(up),
        num_gateways_open=sum(_is_open(samples, name) for samples in samples_by_gateway),
        num_gateways_ejected=sum(
            bool(samples.sum("caret_replica_ejected", replica=name))
            for samples in samples_by_gateway
        ),
        cooldown_s=highest("caret_replica_cooldown_seconds"),
        is_drained=bool(highest("caret_replica_drained")),
        num_in_flight=int(
            sum(
                samples.sum("caret_replica_requests_in_flight", replica=name)
                for samples in samples_by_gateway
            )
        ),
        running=highest("caret_engine_requests_running"),
        waiting=highest("caret_engine_requests_waiting"),
        kv_usage=highest("caret_engine_kv_cache_usage_ratio"),
        hit_rate=min(1.0, (num_hits or 0.0) / num_queries) if num_queries else None,
        speculation=_read_speculation(samples_by_gateway, name),
    )


def _read_speculation(samples_by_gateway: Iterable[MetricSamples], replica: str) -> str:
    """Return the speculation method that gateways state for the replica; "": none."""
    return max(  # prefers any name to ""
        (
            labels.get("speculation", "")
            for samples in samples_by_gateway
            for labels, _ in samples.all_values("caret_pool_replica_info", replica=replica)
        ),
        default="",
    )


def _is_open(samples: MetricSamples, replica: str) -> bool:
    return any(
        samples.sum("caret_replica_circuit_state", replica=replica, circuit=circuit)
        for circuit in _OPEN
    )


def _list_rejected_replicas(samples: MetricSamples, pool: str) -> list[RejectedReplica]:
    """Return the rejected replicas, sorted by name. Equal reports of gateways are combined."""
    return sorted(
        (
            RejectedReplica(
                name=labels["replica"],
                reason=labels["reason"],
                actual=labels["actual"],
                expected=labels["expected"],
                num_gateways=int(num),
            )
            for labels, num in samples.all_values("caret_replica_rejected", pool=pool)
        ),
        key=lambda replica: (replica.name, replica.reason),
    )


def _count_shed_requests(counters: MetricSamples, pool: str) -> dict[str, int]:
    counts = {
        trigger: num
        for trigger in counters.values_of("caret_shed_requests_total", "trigger")
        if (num := int(counters.sum("caret_shed_requests_total", pool=pool, trigger=trigger)))
    }
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _read_acceptance(samples_by_gateway: Iterable[MetricSamples], pool: str) -> dict[str, float]:
    values_by_language: dict[str, list[float]] = {}
    for samples in samples_by_gateway:
        for labels, value in samples.all_values("caret_speculation_acceptance", pool=pool):
            values_by_language.setdefault(labels["language"], []).append(value)
    return {
        language: sum(values) / len(values)
        for language, values in sorted(values_by_language.items())
    }

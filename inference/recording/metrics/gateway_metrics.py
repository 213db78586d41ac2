"""Metrics of the gateway's state, background tasks and event loop.

Only the event loop is measured all the time. All other metrics are computed when they are read.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from caret.foundation.clock import Clock
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.pools.discovery.replica_identity import IdentityMismatch
from inference.pools.health.circuit_breaker import CircuitState
from inference.pools.health.replica_states import ReplicaStates
from inference.pools.pool_config import Pool, PoolConfig
from inference.pools.speculation.speculative_decoding import SpeculationTracker
from inference.prefix_cache.warmup import WarmupQueue
from inference.recording.metrics.fast_counters import FastHistograms

PROBE_EVERY_S: Final = 0.1  # between two measurements of the event loop's lag
_LAG_BOUNDS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class EventLoopLagProbe:
    """Measures the delay with which the event loop wakes a task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lag = FastHistograms(
            "caret_event_loop_lag_seconds",
            "Delay with which a sleeping task is woken.",
            bounds=_LAG_BOUNDS_S,
        )

    async def run(self) -> None:
        """Measure periodically until cancelled."""
        while True:
            began_s = self._clock.monotonic_s()
            await asyncio.sleep(PROBE_EVERY_S)
            late_s = self._clock.monotonic_s() - began_s - PROBE_EVERY_S
            self._lag.observe(max(0.0, late_s))

    def collect(self) -> Iterator[Metric]:
        yield self._lag.to_family()


# CPU time, memory and open files of this process.
_PROCESS: Final = ProcessCollector(registry=None)


class JournalBacklog(Protocol):
    """The part of FileJournal that the metrics need."""

    @property
    def num_waiting_segments(self) -> int: ...
    @property
    def num_unwritten(self) -> int: ...


@dataclass(frozen=True, slots=True)
class GatewayMetrics:
    concurrency: ConcurrencyLimiter
    snapshot_store: SnapshotStore
    pools: PoolConfig
    replicas: ReplicaStates
    journal: JournalBacklog
    # Returns the name of the pool, the name of the replica and the reason of each rejection.
    # Default: `tuple`, which returns none.
    rejected_replicas: Callable[[], Iterable[tuple[str, str, IdentityMismatch]]] = tuple
    region: str = "local"
    # Returns whether the gateway has each capability, by name: public_code_filter, retrieval and
    # experiments. Some policies need a capability. Default: `dict`, which returns none.
    capabilities: Callable[[], Mapping[str, bool]] = dict

    def collect(self) -> Iterator[Metric]:
        yield _make_gauge(
            "caret_completions_in_flight", "Completions in flight.", self.concurrency.num_in_flight
        )
        watchers = self.snapshot_store.num_watchers
        yield _make_gauge(
            "caret_connected_clients", "Connections, and HTTP completions in flight.", watchers
        )
        if (age_s := self.snapshot_store.age_s) is not None:
            yield _make_gauge(
                "caret_snapshot_age_seconds", "Time since the last comparison with Redis.", age_s
            )
        segments = self.journal.num_waiting_segments
        yield _make_gauge(
            "caret_journal_segments", "Journal segments that are not yet in Redis.", segments
        )
        unwritten = self.journal.num_unwritten
        yield _make_gauge(
            "caret_journal_unwritten_records",
            "Records that are only in memory, because the disk is full.",
            unwritten,
        )
        yield from self._collect_capabilities()
        yield from self._collect_pools()
        yield from self._collect_replicas()
        yield self._collect_drained()
        yield from _PROCESS.collect()

    def _collect_capabilities(self) -> Iterator[Metric]:
        region = GaugeMetricFamily(
            "caret_gateway_region", "1 for the gateway's region.", labels=["region"]
        )
        region.add_metric([self.region], 1)
        capabilities = GaugeMetricFamily(
            "caret_gateway_capability",
            "1 if the gateway enforces policies that need this; otherwise 0.",
            labels=["capability"],
        )
        for name, is_available in self.capabilities().items():
            capabilities.add_metric([name], float(is_available))
        yield from (region, capabilities)

    def _collect_pools(self) -> Iterator[Metric]:
        pool_info = GaugeMetricFamily(
            "caret_pool", "1 for each configured pool.", labels=["pool", "tier", "model"]
        )
        sharing = GaugeMetricFamily(
            "caret_pool_sharing",
            "1 for the sharing of each pool in the pools file: default, shared or dedicated.",
            labels=["pool", "sharing"],
        )
        replica_info = GaugeMetricFamily(
            "caret_pool_replica_info",
            "1 for each replica of a pool. Without speculative decoding, `speculation` is empty.",
            labels=["pool", "replica", "speculation"],
        )
        allowed_hosts = GaugeMetricFamily(
            "caret_pool_allowed_replica_hosts",
            "1 for each network or host name at which operators may add replicas.",
            labels=["pool", "hosts"],
        )
        for pool in self.pools.by_name.values():
            pool_info.add_metric([pool.name, pool.tier, pool.model], 1)
            sharing.add_metric([pool.name, self._find_sharing(pool)], 1)
            for hosts in pool.allowed_replica_hosts:
                allowed_hosts.add_metric([pool.name, hosts], 1)
            for replica in pool.replicas:
                replica_info.add_metric([pool.name, replica.name, replica.speculation or ""], 1)
        rejections = GaugeMetricFamily(
            "caret_replica_rejected",
            "1 for each rejected replica of a pool, with the reason.",
            labels=["pool", "replica", "reason", "actual", "expected"],
        )
        for pool_name, replica_name, mismatch in self.rejected_replicas():
            details = (mismatch.reason.value, mismatch.actual, mismatch.expected)
            rejections.add_metric([pool_name, replica_name, *details], 1)
        yield from (pool_info, sharing, replica_info, allowed_hosts, rejections)

    def _find_sharing(self, pool: Pool) -> str:
        if pool.tenants:
            return "dedicated"
        is_default = self.pools.find_shared(pool.tier).name == pool.name
        return "default" if is_default else "shared"

    def _collect_drained(self) -> Metric:
        drained = GaugeMetricFamily(
            "caret_replica_drained", "1 if the replica gets no new requests.", labels=["replica"]
        )
        for replica in self.pools.list_replicas():
            drained.add_metric([replica.name], float(self.replicas.is_drained(replica)))
        return drained

    def _collect_replicas(self) -> Iterator[Metric]:
        in_flight = GaugeMetricFamily(
            "caret_replica_requests_in_flight",
            "Requests of this gateway in flight at this replica.",
            labels=["replica"],
        )
        circuits = GaugeMetricFamily(
            "caret_replica_circuit_state",
            "1 for the current state of the replica's circuit.",
            labels=["replica", "circuit"],
        )
        cooldowns = GaugeMetricFamily(
            "caret_replica_cooldown_seconds",
            "Seconds until the replica's open circuit allows a trial request.",
            labels=["replica"],
        )
        ejections = GaugeMetricFamily(
            "caret_replica_ejected",
            "1 if other replicas are preferred because the replica's first tokens are late.",
            labels=["replica"],
        )
        reroutes = CounterMetricFamily(
            "caret_replica_rerouted_requests",
            "Requests that moved to another replica because this one was late.",
            labels=["replica"],
        )
        for replica in self.pools.list_replicas():
            reroutes.add_metric([replica.name], self.replicas.num_rerouted(replica))
            ejections.add_metric([replica.name], float(self.replicas.is_ejected(replica)))
            in_flight.add_metric([replica.name], self.replicas.num_in_flight(replica))
            if (cooldown_s := self.replicas.cooldown_s(replica)) is not None:
                cooldowns.add_metric([replica.name], cooldown_s)
            current_circuit = self.replicas.get_circuit(replica)
            for circuit in CircuitState:
                circuits.add_metric([replica.name, circuit], float(circuit is current_circuit))
        yield from (in_flight, circuits, cooldowns, ejections, reroutes)


def _make_gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)


@dataclass(frozen=True, slots=True)
class BackgroundMetrics:
    """Metrics of warm-ups and speculative decoding."""

    warmup_queue: WarmupQueue
    speculation: SpeculationTracker

    def collect(self) -> Iterator[Metric]:
        warm_ups = CounterMetricFamily(
            "caret_warmups", "Warm-ups that have ended, by outcome.", labels=["outcome"]
        )
        for outcome, count in self.warmup_queue.num_ended.items():
            warm_ups.add_metric([outcome], count)
        yield warm_ups
        acceptance = GaugeMetricFamily(
            "caret_speculation_acceptance",
            "Estimated share of drafted tokens that are accepted, if it is known.",
            labels=["pool", "language"],
        )
        by_position = GaugeMetricFamily(
            "caret_speculation_position_acceptance",
            "Estimated share of drafts whose token at this position is accepted, if it is known.",
            labels=["pool", "language", "position"],
        )
        fallback = GaugeMetricFamily(
            "caret_speculation_fallback",
            "1 while requests go to replicas without speculation because few drafts are accepted.",
            labels=["pool", "language"],
        )
        for (pool, language), estimate in self.speculation.estimates.items():
            is_using_fallback = self.speculation.is_using_fallback(pool, language)
            fallback.add_metric([pool, language], float(is_using_fallback))
            if estimate.acceptance is None:
                continue
            acceptance.add_metric([pool, language], estimate.acceptance)
            for position, share in enumerate(estimate.by_position, start=1):
                by_position.add_metric([pool, language, str(position)], share)
        yield from (acceptance, by_position, fallback)

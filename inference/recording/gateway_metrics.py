"""Gauges: how the gateway is at the moment it is asked. Nothing is kept for them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.pools.discovery.replica_identity import IdentityMismatch
from inference.pools.health.circuit_breaker import CircuitState
from inference.pools.health.replica_states import ReplicaStates
from inference.pools.pool_config import PoolConfig

_PROCESS: Final = ProcessCollector(registry=None)


class JournalBacklog(Protocol):
    @property
    def num_waiting_segments(self) -> int: ...
    @property
    def num_unwritten(self) -> int: ...


@dataclass(frozen=True, slots=True)
class GatewayMetrics:
    seats: ConcurrencyLimiter
    authority: SnapshotStore
    pools: PoolConfig
    replicas: ReplicaStates
    journal: JournalBacklog
    rejected_replicas: Callable[[], Iterable[tuple[str, str, IdentityMismatch]]] = (
        tuple  # pool, replica, why
    )

    def collect(self) -> Iterator[Metric]:
        yield _one(
            "caret_completions_in_flight", "Completions under way.", self.seats.num_in_flight
        )
        watchers = self.authority.num_watchers
        yield _one(
            "caret_connected_clients", "Connections, and HTTP completions under way.", watchers
        )
        if (age_s := self.authority.age_s) is not None:
            yield _one("caret_snapshot_age_seconds", "Since they were compared with Redis.", age_s)
        segments = self.journal.num_waiting_segments
        yield _one("caret_journal_segments", "Of usage that Redis does not have yet.", segments)
        unwritten = self.journal.num_unwritten
        yield _one(
            "caret_journal_unwritten_records", "Records that the disk did not take.", unwritten
        )
        yield from self._collect_pools()
        yield from self._collect_replicas()
        yield self._collect_drained()
        yield from _PROCESS.collect()

    def _collect_pools(self) -> Iterator[Metric]:
        about = GaugeMetricFamily(
            "caret_pool", "1 for each pool of the catalogue.", labels=["pool", "tier", "model"]
        )
        members = GaugeMetricFamily(
            "caret_pool_replica_info", "1 for each replica of a pool.", labels=["pool", "replica"]
        )
        places = GaugeMetricFamily(
            "caret_pool_allowed_replica_hosts",
            "1 for each network or name in which operators may add replicas.",
            labels=["pool", "hosts"],
        )
        for pool in self.pools.by_name.values():
            about.add_metric([pool.name, pool.tier, pool.model], 1)
            for hosts in pool.allowed_replica_hosts:
                places.add_metric([pool.name, hosts], 1)
            for replica in pool.replicas:
                members.add_metric([pool.name, replica.name], 1)
        refused = GaugeMetricFamily(
            "caret_replica_rejected",
            "1 for each replica that contradicts its pool and is asked nothing.",
            labels=["pool", "replica", "reason", "found", "wanted"],
        )
        for name, replica_name, refusal in self.rejected_replicas():
            words = (refusal.reason.value, refusal.found, refusal.wanted)
            refused.add_metric([name, replica_name, *words], 1)
        yield from (about, members, places, refused)

    def _collect_drained(self) -> Metric:
        drained = GaugeMetricFamily(
            "caret_replica_drained", "1: it is asked nothing new.", labels=["replica"]
        )
        for replica in self.pools.list_replicas():
            drained.add_metric([replica.name], float(self.replicas.is_drained(replica)))
        return drained

    def _collect_replicas(self) -> Iterator[Metric]:
        under_way = GaugeMetricFamily(
            "caret_replica_requests_in_flight",
            "Requests of this gateway under way there.",
            labels=["replica"],
        )
        circuits = GaugeMetricFamily(
            "caret_replica_circuit_state",
            "1 for what its circuit is.",
            labels=["replica", "circuit"],
        )
        rests = GaugeMetricFamily(
            "caret_replica_cooldown_seconds",
            "How much longer it is left alone, its circuit being open.",
            labels=["replica"],
        )
        late = GaugeMetricFamily(
            "caret_replica_ejected",
            "1: who asks it waits so long that others of its pool are asked instead.",
            labels=["replica"],
        )
        moved = CounterMetricFamily(
            "caret_replica_rerouted_requests",
            "Requests that waited there for too long, so that another was asked.",
            labels=["replica"],
        )
        for replica in self.pools.list_replicas():
            moved.add_metric([replica.name], self.replicas.num_rerouted(replica))
            late.add_metric([replica.name], float(self.replicas.is_ejected(replica)))
            under_way.add_metric([replica.name], self.replicas.num_in_flight(replica))
            if (rests_s := self.replicas.cooldown_s(replica)) is not None:
                rests.add_metric([replica.name], rests_s)
            is_now = self.replicas.get_circuit(replica)
            for circuit in CircuitState:
                circuits.add_metric([replica.name, circuit], float(circuit is is_now))
        yield from (under_way, circuits, rests, late, moved)


def _one(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)

"""Prometheus metrics of a gateway, its replicas and its engines."""

import asyncio
from contextlib import ExitStack

import pytest

from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.pools.health.outlier_detection import MAX_CONSECUTIVE_LATE
from inference.pools.health.replica_states import COOLDOWN_S, HealthStatus, ReplicaStates
from inference.pools.pool_config import Replica
from inference.pools.vllm.monitoring import parse_metrics
from inference.recording.metrics.engine_metrics import EngineMetricsPoller, MetricValues
from inference.recording.metrics.gateway_metrics import (
    PROBE_EVERY_S,
    EventLoopLagProbe,
    GatewayMetrics,
)
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool, make_pools
from tests.fakes.tenants import ACME, ROOT_SECRET
from tests.unit.inference.test_completion_metrics import sample_value

# Metrics of two engines behind one address, as vLLM exports them.
PAGE = """\
# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="demo"} 2.0
vllm:num_requests_running{engine="1",model_name="demo"} 3.0
vllm:num_requests_waiting{engine="0",model_name="demo"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="demo"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="demo"} 0.75
vllm:prefix_cache_queries_total{engine="0",model_name="demo"} 4000.0
vllm:prefix_cache_queries_total{engine="1",model_name="demo"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="demo"} 3600.0
vllm:malformed{engine="0"} many
python_gc_objects_collected_total{generation="0"} 513.0
"""


class FakeJournal:
    """The numbers that GatewayMetrics reads from a journal."""

    num_waiting_segments = 4
    num_unwritten = 2


class FakeReader:
    def __init__(self, values: dict[str, MetricValues | None]) -> None:
        self.values = values

    async def read(self, replica: Replica) -> MetricValues | None:
        return self.values[replica.name]


class SilentReader:
    async def read(self, replica: Replica) -> MetricValues | None:
        await asyncio.sleep(60)
        return {}


def make_metrics(clock: FakeClock, *, replicas: ReplicaStates | None = None) -> GatewayMetrics:
    pool = make_pool("http://engine-1:8000", "http://engine-2:8000")
    return GatewayMetrics(
        concurrency=ConcurrencyLimiter(max_total=16),
        snapshot_store=SnapshotStore(root_secret=ROOT_SECRET, clock=clock, max_age_s=300),
        pools=make_pools(pool),
        replicas=replicas or ReplicaStates(clock),
        journal=FakeJournal(),
    )


def test_completions_in_flight_and_the_journal_backlog_are_current() -> None:
    metrics = make_metrics(FakeClock())

    with metrics.concurrency.acquire(ACME, max_of_tenant=5):
        assert sample_value(metrics.collect(), "caret_completions_in_flight") == 1

    assert sample_value(metrics.collect(), "caret_completions_in_flight") == 0
    assert sample_value(metrics.collect(), "caret_journal_segments") == 4
    assert sample_value(metrics.collect(), "caret_journal_unwritten_records") == 2
    assert sample_value(metrics.collect(), "process_resident_memory_bytes")


def test_snapshots_have_no_age_before_the_first_sync() -> None:
    clock = FakeClock()
    metrics = make_metrics(clock)
    assert sample_value(metrics.collect(), "caret_snapshot_age_seconds") is None

    metrics.snapshot_store.mark_synced()
    clock.pass_s(7)

    assert sample_value(metrics.collect(), "caret_snapshot_age_seconds") == 7


def test_each_replica_has_its_load_and_circuit_state() -> None:
    replicas = ReplicaStates(FakeClock())
    metrics = make_metrics(FakeClock(), replicas=replicas)
    first, second = metrics.pools.list_replicas()
    replicas.on_health_check(second, HealthStatus.UNHEALTHY)

    with replicas.attempt(first):
        families = list(metrics.collect())

    assert sample_value(families, "caret_replica_requests_in_flight", replica=first.name) == 1
    assert sample_value(families, "caret_replica_requests_in_flight", replica=second.name) == 0
    assert (
        sample_value(families, "caret_replica_circuit_state", replica=second.name, circuit="open")
        == 1
    )
    assert (
        sample_value(families, "caret_replica_circuit_state", replica=second.name, circuit="closed")
        == 0
    )
    assert (
        sample_value(families, "caret_replica_circuit_state", replica=first.name, circuit="closed")
        == 1
    )


def test_an_ejected_replica_is_exported() -> None:
    clock = FakeClock()
    replicas = ReplicaStates(clock)
    metrics = make_metrics(clock, replicas=replicas)
    first, second = metrics.pools.list_replicas()

    with ExitStack() as stack:
        for _ in range(MAX_CONSECUTIVE_LATE):
            stack.enter_context(replicas.attempt(first, first_token_timeout_s=1.0))
        clock.pass_s(2.0)
        families = list(metrics.collect())

    assert sample_value(families, "caret_replica_ejected", replica=first.name) == 1
    assert sample_value(families, "caret_replica_ejected", replica=second.name) == 0


async def test_rerouted_requests_are_exported() -> None:
    clock = FakeClock()
    replicas = ReplicaStates(clock)
    metrics = make_metrics(clock, replicas=replicas)
    first, second = metrics.pools.list_replicas()

    async def wait_forever() -> None:
        with replicas.attempt(first, first_token_timeout_s=1.0, fallback=second):
            await asyncio.Event().wait()

    waiting = [asyncio.create_task(wait_forever()) for _ in range(MAX_CONSECUTIVE_LATE)]
    await asyncio.sleep(0)
    clock.pass_s(2.0)
    replicas.reroute_overdue()
    await asyncio.gather(*waiting, return_exceptions=True)
    families = list(metrics.collect())

    assert (
        sample_value(families, "caret_replica_rerouted_requests_total", replica=first.name)
        == MAX_CONSECUTIVE_LATE
    )
    assert sample_value(families, "caret_replica_rerouted_requests_total", replica=second.name) == 0


def test_pools_and_their_replicas_are_exported() -> None:
    families = list(make_metrics(FakeClock()).collect())

    assert sample_value(families, "caret_pool", pool="demo-fast", tier="fast", model="demo") == 1
    labels = {"pool": "demo-fast", "replica": "engine-2:8000", "speculation": ""}
    assert sample_value(families, "caret_pool_replica_info", **labels) == 1


def test_draining_and_cooldown_are_exported() -> None:
    clock = FakeClock()
    replicas = ReplicaStates(clock)
    metrics = make_metrics(clock, replicas=replicas)
    first, second = metrics.pools.list_replicas()

    replicas.set_drained([first.name])
    replicas.on_health_check(second, HealthStatus.UNHEALTHY)
    clock.pass_s(0.5)
    families = list(metrics.collect())

    assert sample_value(families, "caret_replica_drained", replica=first.name) == 1
    assert sample_value(families, "caret_replica_drained", replica=second.name) == 0
    assert (
        sample_value(families, "caret_replica_cooldown_seconds", replica=second.name)
        == COOLDOWN_S - 0.5
    )
    assert sample_value(families, "caret_replica_cooldown_seconds", replica=first.name) is None


async def test_engines_behind_one_address_are_combined() -> None:
    (replica,) = make_pool("http://engine-1:8000").replicas
    poller = EngineMetricsPoller(FakeReader({replica.name: parse_metrics(PAGE)}), lambda: [replica])

    await poller.poll()

    families = list(poller.collect())
    assert sample_value(families, "caret_engine_up", replica=replica.name) == 1
    # Numbers are added up.
    assert sample_value(families, "caret_engine_requests_running") == 5
    assert sample_value(families, "caret_engine_requests_waiting") == 7
    assert sample_value(families, "caret_engine_kv_cache_usage_ratio") == 0.75  # the higher one
    assert sample_value(families, "caret_engine_prefix_cache_queries_total") == 5000
    assert sample_value(families, "caret_engine_prefix_cache_hits_total") == 3600


async def test_an_unreachable_engine_is_down_and_has_no_old_values() -> None:
    (replica,) = make_pool("http://engine-1:8000").replicas
    reader = FakeReader({replica.name: parse_metrics(PAGE)})
    poller = EngineMetricsPoller(reader, lambda: [replica])
    await poller.poll()

    reader.values[replica.name] = None
    await poller.poll()

    assert sample_value(poller.collect(), "caret_engine_up") == 0
    assert sample_value(poller.collect(), "caret_engine_requests_running") is None


async def test_a_hanging_engine_does_not_block_the_poller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("inference.recording.metrics.engine_metrics.MAX_READ_S", 0.01)
    (replica,) = make_pool("http://engine-1:8000").replicas
    poller = EngineMetricsPoller(SilentReader(), lambda: [replica])

    await poller.poll()

    assert sample_value(poller.collect(), "caret_engine_up") == 0


def test_metrics_of_other_programs_are_left_out() -> None:
    assert set(parse_metrics(PAGE)) == {
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "vllm:prefix_cache_queries_total",
        "vllm:prefix_cache_hits_total",
    }


async def test_a_blocked_event_loop_shows_as_lag() -> None:
    clock = FakeClock()
    lag = EventLoopLagProbe(clock)
    probing = asyncio.create_task(lag.run())
    await asyncio.sleep(0)

    # When the probe wakes up, the fake clock shows that it is 0.3 s late.
    clock.pass_s(PROBE_EVERY_S + 0.3)
    await asyncio.sleep(PROBE_EVERY_S * 1.5)
    probing.cancel()

    assert sample_value(lag.collect(), "caret_event_loop_lag_seconds_sum") == pytest.approx(0.3)

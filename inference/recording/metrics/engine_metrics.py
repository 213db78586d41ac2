"""The load that each engine reports, polled and exported as metrics of the gateway."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from inference.pools.pool_config import Replica

MAX_READ_S: Final = 2.0  # of one replica
# By the engine's name of a metric: its values, one for each combination of labels.
MetricValues = dict[str, list[float]]


class EngineMetricsReader(Protocol):
    async def read(self, replica: Replica) -> MetricValues | None:
        """Return the replica's metrics; None if the replica does not respond."""


# Our name, vLLM's name, the documentation, and the function that combines the values of several
# engines behind one URL.
_GAUGES: Final[tuple[tuple[str, str, str, Callable[[list[float]], float]], ...]] = (
    (
        "caret_engine_requests_running",
        "vllm:num_requests_running",
        "Requests that the engine is running.",
        sum,
    ),
    (
        "caret_engine_requests_waiting",
        "vllm:num_requests_waiting",
        "Requests in the engine's queue.",
        sum,
    ),
    (
        "caret_engine_kv_cache_usage_ratio",
        "vllm:kv_cache_usage_perc",
        "Share of the engine's KV cache in use.",
        max,
    ),
)
# Our name, vLLM's name and the documentation. These counters are per replica. The gateway's own
# counters of prompt tokens and cached tokens are per pool.
_COUNTERS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "caret_engine_prefix_cache_queries",
        "vllm:prefix_cache_queries_total",
        "Prompt tokens looked up in the engine's prefix cache.",
    ),
    (
        "caret_engine_prefix_cache_hits",
        "vllm:prefix_cache_hits_total",
        "Prompt tokens found in the engine's prefix cache.",
    ),
)


class EngineMetricsPoller:
    def __init__(
        self, reader: EngineMetricsReader, list_replicas: Callable[[], Iterable[Replica]]
    ) -> None:
        """`list_replicas` returns the current replicas. It is called in each round."""
        self._reader = reader
        self._list_replicas = list_replicas
        # By the replica's name; None: the replica did not respond to the last poll.
        self._values_by_replica: dict[str, MetricValues | None] = {}

    async def run(self, *, every_s: float) -> None:
        """Poll periodically until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(every_s)

    async def poll(self) -> None:
        """Read the metrics of all replicas once. Delete those of replicas that left."""
        replicas = tuple(self._list_replicas())
        for name in self._values_by_replica.keys() - {replica.name for replica in replicas}:
            del self._values_by_replica[name]
        async with asyncio.TaskGroup() as group:
            for replica in replicas:
                group.create_task(self._poll_replica(replica))

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "caret_engine_up", "1 if the engine reports its metrics.", labels=_LABELS
        )
        for name, values in self._values_by_replica.items():
            up.add_metric([name], float(values is not None))
        yield up
        for our_name, engine_name, documentation, aggregate in _GAUGES:
            family = GaugeMetricFamily(our_name, documentation, labels=_LABELS)
            for name, values in self._values_by_replica.items():
                if values is not None and (samples := values.get(engine_name)):
                    family.add_metric([name], aggregate(samples))
            yield family
        for our_name, engine_name, documentation in _COUNTERS:
            counter = CounterMetricFamily(our_name, documentation, labels=_LABELS)
            for name, values in self._values_by_replica.items():
                if values is not None and (samples := values.get(engine_name)):
                    counter.add_metric([name], sum(samples))
            yield counter

    async def _poll_replica(self, replica: Replica) -> None:
        try:
            async with asyncio.timeout(MAX_READ_S):
                self._values_by_replica[replica.name] = await self._reader.read(replica)
        except TimeoutError:
            self._values_by_replica[replica.name] = None


_LABELS: Final = ["replica"]

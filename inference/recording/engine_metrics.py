"""How busy each engine says it is, read again and again and shown among the gateway's metrics."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from inference.pools.pool_config import Replica

MAX_READ_S: Final = 2.0
Values = dict[str, list[float]]


class EngineMetricsReader(Protocol):
    async def read(self, replica: Replica) -> Values | None:
        """What the replica says, by the engine's own names; None: it did not answer."""


# Ours, vLLM's, and how the values of several engines behind one address become one.
_GAUGES: Final[tuple[tuple[str, str, str, Callable[[list[float]], float]], ...]] = (
    (
        "caret_engine_requests_running",
        "vllm:num_requests_running",
        "Requests that it generates for.",
        sum,
    ),
    ("caret_engine_requests_waiting", "vllm:num_requests_waiting", "Requests in its queue.", sum),
    (
        "caret_engine_kv_cache_usage_ratio",
        "vllm:kv_cache_usage_perc",
        "Share of its KV cache in use.",
        max,
    ),
)
# Of each replica, where the gateway's own counts are of the pool.
_COUNTERS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "caret_engine_prefix_cache_queries",
        "vllm:prefix_cache_queries_total",
        "Prompt tokens that it looked for in its prefix cache.",
    ),
    (
        "caret_engine_prefix_cache_hits",
        "vllm:prefix_cache_hits_total",
        "Of those, the ones that it found.",
    ),
)


class EngineMetricsPoller:
    def __init__(
        self, reader: EngineMetricsReader, replicas: Callable[[], Iterable[Replica]]
    ) -> None:
        """`replicas`: those that there are, asked anew for each round."""
        self._reader = reader
        self._replicas = replicas
        self._told: dict[str, Values | None] = {}  # by the replica's name

    async def run(self, *, every_s: float) -> None:
        while True:
            await self.poll()
            await asyncio.sleep(every_s)

    async def poll(self) -> None:
        every = tuple(self._replicas())
        for gone in self._told.keys() - {replica.name for replica in every}:
            del self._told[gone]
        async with asyncio.TaskGroup() as group:
            for replica in every:
                group.create_task(self._poll_replica(replica))

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("caret_engine_up", "Whether it tells its metrics.", labels=_LABELS)
        for name, values in self._told.items():
            up.add_metric([name], float(values is not None))
        yield up
        for ours, theirs, documentation, together in _GAUGES:
            family = GaugeMetricFamily(ours, documentation, labels=_LABELS)
            for name, values in self._told.items():
                if values is not None and (found := values.get(theirs)):
                    family.add_metric([name], together(found))
            yield family
        for ours, theirs, documentation in _COUNTERS:
            counter = CounterMetricFamily(ours, documentation, labels=_LABELS)
            for name, values in self._told.items():
                if values is not None and (found := values.get(theirs)):
                    counter.add_metric([name], sum(found))
            yield counter

    async def _poll_replica(self, replica: Replica) -> None:
        try:
            async with asyncio.timeout(MAX_READ_S):
                self._told[replica.name] = await self._reader.read(replica)
        except TimeoutError:
            self._told[replica.name] = None


_LABELS: Final = ["replica"]

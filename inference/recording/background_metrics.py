"""Metrics of what goes on beside the requests: warm-ups, and what is known of speculation."""

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from inference.pools.speculation.speculative_decoding import SpeculationTracker
from inference.prefix_cache.warmup import Warmer


@dataclass(frozen=True, slots=True)
class BackgroundMetrics:
    warmer: Warmer
    speculation: SpeculationTracker

    def collect(self) -> Iterator[Metric]:
        warm_ups = CounterMetricFamily(
            "caret_warmups", "Warm-ups that have ended, by how.", labels=["outcome"]
        )
        for outcome, count in self.warmer.num_ended.items():
            warm_ups.add_metric([outcome], count)
        yield warm_ups
        acceptance = GaugeMetricFamily(
            "caret_speculation_acceptance",
            "Estimated share of drafted tokens that is accepted, where it can be told.",
            labels=["pool", "language"],
        )
        for (pool, language), estimate in self.speculation.estimates.items():
            if estimate.acceptance is not None:
                acceptance.add_metric([pool, language], estimate.acceptance)
        yield acceptance

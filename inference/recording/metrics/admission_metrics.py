"""Metrics of the admit stage: limits and latency of pools, shed requests, rejections, leases."""

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from caret.contracts.policy import Mode
from inference.gateway.load_shedding.load_shedder import LoadShedder
from inference.gateway.rate_limits.quotas import Quotas


@dataclass(frozen=True, slots=True)
class AdmissionMetrics:
    load_shedder: LoadShedder
    quotas: Quotas

    def collect(self) -> Iterator[Metric]:
        yield from self._collect_pools()
        yield self._collect_shed()
        rejections = CounterMetricFamily(
            "caret_rate_limited_requests",
            "Requests rejected by rate limits, token quotas and budgets.",
            labels=["limit"],
        )
        for kind, count in self.quotas.num_rejected.items():
            rejections.add_metric([kind], count)
        yield rejections
        yield GaugeMetricFamily(
            "caret_rate_limit_store_unavailable",
            "1 while Redis is unreachable and limits are local to this gateway.",
            value=float(self.quotas.leases.is_store_unavailable),
        )
        yield from self._collect_leases()

    def _collect_leases(self) -> Iterator[Metric]:
        leases = self.quotas.leases
        calls = CounterMetricFamily(
            "caret_lease_calls", "Calls to Redis about leases.", labels=["result"]
        )
        for result in ("answered", "failed"):
            calls.add_metric([result], leases.num_calls[result])
        leased_units = GaugeMetricFamily(
            "caret_leased_units",
            "Units leased by this gateway: tenths of actions, tokens, or micros of money.",
            labels=["limit"],
        )
        for kind, units in leases.num_granted_units.items():
            leased_units.add_metric([kind], units)
        yield from (calls, leased_units)
        yield GaugeMetricFamily(
            "caret_leases_unanswered",
            "Buckets whose last lease call to Redis was not answered.",
            value=float(leases.num_unanswered),
        )

    def _collect_pools(self) -> Iterator[Metric]:
        in_flight = GaugeMetricFamily(
            "caret_pool_requests_in_flight", "Requests of this gateway in flight.", labels=["pool"]
        )
        limits = GaugeMetricFamily(
            "caret_pool_concurrency_limit",
            "Limit of requests in flight, adapted to the first-token latency.",
            labels=["pool"],
        )
        first_token_p99 = GaugeMetricFamily(
            "caret_pool_first_token_p99_seconds",
            "p99 of the time from admission to the first token, over the last ten seconds.",
            labels=["pool", "mode"],
        )
        for pool in self.load_shedder.pools:
            stats_by_mode = {mode: self.load_shedder.get_stats(pool, mode) for mode in Mode}
            any_stats = stats_by_mode[Mode.INLINE]  # these two values are equal for all modes
            in_flight.add_metric([pool], any_stats.num_in_flight)
            limits.add_metric([pool], any_stats.limit)
            for mode, stats in stats_by_mode.items():
                if stats.first_token_p99_ms is not None:
                    first_token_p99.add_metric([pool, mode], stats.first_token_p99_ms / 1000)
        yield from (in_flight, limits, first_token_p99)

    def _collect_shed(self) -> Metric:
        shed = CounterMetricFamily(
            "caret_shed_requests",
            "Requests shed before the engine for lack of capacity.",
            labels=["pool", "mode", "trigger"],
        )
        for (pool, mode, trigger), count in self.load_shedder.num_shed.items():
            shed.add_metric([pool, mode, trigger], count)
        return shed

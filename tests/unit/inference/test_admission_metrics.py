"""The metrics of the stage admit: rejections, leases, limits of pools and shed requests."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from caret.contracts.policy import PolicyLimits, RateLimit, Trigger
from inference.errors import CompletionDropped, TooManyRequests
from inference.recording.metrics.admission_metrics import AdmissionMetrics
from tests.fakes.clock import FakeClock
from tests.fakes.leases import make_quotas
from tests.fakes.pools import make_load_shedder
from tests.fakes.requests import make_request, make_trace
from tests.fakes.tenants import make_policy, make_principal

_PREFETCH: Final = make_request(trigger=Trigger.PREFETCH)


class _AdmissionCollector(Collector):
    """Exports the metrics as a Prometheus collector."""

    def __init__(self, metrics: AdmissionMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return self._metrics.collect()


async def test_rejections_by_a_rate_limit_and_its_leases_are_exported() -> None:
    quotas = make_quotas()
    limits = PolicyLimits(user=RateLimit(per_minute=1, burst=1))
    principal = make_principal(policy=make_policy(limits=limits))
    async with quotas.charge(principal, make_request(), make_trace()):
        with pytest.raises(TooManyRequests):
            async with quotas.charge(principal, make_request(path="b.py"), make_trace()):
                pass

    await quotas.leases.evict_idle()  # updates the two gauges of leases
    page = _render(AdmissionMetrics(make_load_shedder("fast"), quotas))

    assert 'caret_rate_limited_requests_total{limit="user"} 1.0' in page
    assert "caret_rate_limit_store_unavailable 0.0" in page
    assert 'caret_leased_units{limit="user"} 0.0' in page
    # Each of the two requests called the store.
    assert 'caret_lease_calls_total{result="answered"} 2.0' in page
    assert 'caret_lease_calls_total{result="failed"} 0.0' in page
    assert "caret_leases_unanswered 0.0" in page


def test_the_limit_and_shed_requests_of_a_pool_are_exported() -> None:
    clock = FakeClock()
    load = make_load_shedder("fast", clock=clock)
    # Admit prefetches until one is shed.
    with ExitStack() as completions, suppress(CompletionDropped):
        while True:
            completions.enter_context(load.admit("fast", _PREFETCH, make_trace(clock)))
    # A request that ends after 1 s without a first token counts with this time.
    with load.admit("fast", make_request(), make_trace(clock)):
        clock.pass_s(1.0)

    page = _render(AdmissionMetrics(load, make_quotas(clock)))

    labels = '{mode="inline",pool="fast",trigger="prefetch"}'
    assert f"caret_shed_requests_total{labels} 1.0" in page
    assert 'caret_pool_requests_in_flight{pool="fast"} 0.0' in page
    assert 'caret_pool_concurrency_limit{pool="fast"} 64.0' in page  # the initial limit
    assert 'caret_pool_first_token_p99_seconds{mode="inline",pool="fast"} 1.0' in page


def _render(metrics: AdmissionMetrics) -> str:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_AdmissionCollector(metrics))
    return generate_latest(registry).decode()

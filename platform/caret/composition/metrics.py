"""The metrics endpoint of the data plane, and the metrics that the endpoint serves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

import aiohttp

from caret.composition.background_tasks import run_background_tasks
from caret.foundation.web import connections
from inference.config import DataPlaneConfig
from inference.consumers.http.identical_requests import SHARED_COMPLETIONS
from inference.pipeline import DataPlane
from inference.pools.discovery.pool_members import PoolMembers
from inference.pools.vllm.monitoring import VllmMetrics
from inference.recording.journal import FileJournal
from inference.recording.metrics.admission_metrics import AdmissionMetrics
from inference.recording.metrics.completion_metrics import CompletionMetrics
from inference.recording.metrics.engine_metrics import EngineMetricsPoller
from inference.recording.metrics.gateway_metrics import (
    BackgroundMetrics,
    EventLoopLagProbe,
    GatewayMetrics,
)
from inference.recording.metrics.metrics_server import serve_metrics_page
from inference.recording.slowest_requests import SlowestRequests


class MetricSources(NamedTuple):
    """Sources of metrics besides the data plane."""

    journal: FileJournal
    session: aiohttp.ClientSession
    slowest: SlowestRequests
    pool_members: PoolMembers


@asynccontextmanager
async def serve_metrics(
    config: DataPlaneConfig, plane: DataPlane, metrics: CompletionMetrics, sources: MetricSources
) -> AsyncIterator[None]:
    """Serve the metrics page until the block ends. Do nothing if the configured port is 0.

    The path `/slow` returns the slowest requests.
    """
    if not config.metrics_port:
        yield
        return
    lag_probe = EventLoopLagProbe(plane.clock)
    engines = EngineMetricsPoller(VllmMetrics(sources.session), plane.router.pools.list_replicas)
    gauges = GatewayMetrics(
        concurrency=plane.admission.concurrency,
        snapshot_store=plane.snapshots,
        pools=plane.router.pools,
        replicas=plane.router.replicas,
        journal=sources.journal,
        rejected_replicas=lambda: sources.pool_members.rejected_replicas,
        region=config.region,
        capabilities=lambda: {
            "public_code_filter": plane.public_code.current is not None,
            "retrieval": config.has_retrieval,
            "experiments": bool(plane.admission.experiments.variants),
        },
    )
    admission = AdmissionMetrics(plane.admission.load_shedder, plane.admission.quotas)
    background = BackgroundMetrics(plane.warmup_queue, plane.router.speculation)
    collect_functions = (
        metrics.collect,
        gauges.collect,
        admission.collect,
        engines.collect,
        lag_probe.collect,
        background.collect,
        *(metric.collect for metric in (*connections.METRICS, SHARED_COMPLETIONS)),
    )
    page = serve_metrics_page(
        collect_functions,
        host=config.metrics_host,
        port=config.metrics_port,
        extra_pages={"/slow": sources.slowest.encode},
    )
    poll_engines = partial(engines.run, every_s=config.engine_metrics_interval_s)
    async with run_background_tasks((("lag", lag_probe.run), ("engines", poll_engines))), page:
        yield

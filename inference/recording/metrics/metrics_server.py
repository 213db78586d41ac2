"""Serves `GET /metrics` in Prometheus's text format on a separate port.

Only the operator's network may reach this port.

Further paths serve other data for operators, as bytes. Metrics are written family by family (a
family is one metric with all its labels). Other tasks run in between, so that no completion waits
for more than one family.
"""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4"
CollectMetrics = Callable[[], Iterable[Metric]]
MakeBytes = Callable[[], bytes]
log = structlog.get_logger(__name__)


@asynccontextmanager
async def serve_metrics_page(
    sources: Iterable[CollectMetrics],
    *,
    host: str,
    port: int,
    extra_pages: Mapping[str, MakeBytes] | None = None,
) -> AsyncIterator[None]:
    """Serve until the context is left. `extra_pages`: by path, the function that makes the body.

    If the port cannot be opened, the gateway continues without metrics. Each gateway on a machine
    needs its own port.
    """
    application = web.Application()
    application.router.add_get("/metrics", _MetricsPage(tuple(sources)).respond)
    for path, make_body in (extra_pages or {}).items():
        application.router.add_get(path, partial(_respond_with_bytes, make_body))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            log.error("metrics.not_served", host=host, port=port, reason=_explain_error(error))
        yield
    finally:
        await runner.cleanup()


async def _respond_with_bytes(make_body: MakeBytes, _request: web.Request) -> web.Response:
    return web.Response(body=make_body(), content_type="application/octet-stream")


class _MetricsPage:
    def __init__(self, sources: tuple[CollectMetrics, ...]) -> None:
        self._sources = sources

    async def respond(self, _request: web.Request) -> web.Response:
        parts: list[bytes] = []
        for source in self._sources:
            for family in source():
                parts.append(generate_latest(_FamilyCollector(family)))
                await asyncio.sleep(0)
        return web.Response(body=b"".join(parts), headers={"Content-Type": CONTENT_TYPE})


@dataclass(frozen=True)
class _FamilyCollector(Collector):
    """A collector of one family, because `generate_latest` requires a collector."""

    family: Metric

    def collect(self) -> Iterable[Metric]:
        yield self.family


def _explain_error(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "the port is in use, perhaps by another gateway: use another port, or 0 for no metrics"
        )
    return error.strerror or type(error).__name__

"""Exports spans to an OpenTelemetry collector over HTTP, in a separate thread.

OpenTelemetry's own environment variables configure the export (OTEL_EXPORTER_OTLP_ENDPOINT and
related ones, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_BSP_...). An
unreachable collector does not delay completions: the queue is bounded, and excess spans are
dropped.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased

from inference.recording.otel_spans import SpanRecorder

MAX_LAST_EXPORT_S: Final = 2.0  # at shutdown


@asynccontextmanager
async def open_otlp_exporter(
    *, share: float | None, trusts_clients: bool
) -> AsyncIterator[SpanRecorder]:
    """Yield a recorder whose spans are exported.

    On exit, wait up to MAX_LAST_EXPORT_S until the remaining spans are sent.

    `share` is the sampled share of completions, 0 to 1; None: OTEL_TRACES_SAMPLER decides.
    `trusts_clients`: see SpanRecorder.
    """
    # At a lower level, each retry of each batch would log a line.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
    processor = BatchSpanProcessor(OTLPSpanExporter())
    try:
        yield SpanRecorder(
            _make_sampler(share), _make_resource(), processor, trusts_clients=trusts_clients
        )
    finally:
        await _shut_down(processor)


def _make_sampler(share: float | None) -> Sampler:
    if share is None:  # the provider reads OTEL_TRACES_SAMPLER
        return TracerProvider(shutdown_on_exit=False).sampler
    return ParentBased(root=TraceIdRatioBased(share))


def _make_resource() -> Resource:
    resource = Resource.create()
    name = str(resource.attributes.get(SERVICE_NAME, ""))
    if name and not name.startswith("unknown_service"):  # OpenTelemetry's default name
        return resource
    return Resource.create({SERVICE_NAME: "caret-gateway"})


async def _shut_down(processor: BatchSpanProcessor) -> None:
    """Shut down, but wait at most MAX_LAST_EXPORT_S. A slow collector may need half a minute.

    The shutdown has its own thread, because a thread of the executor would delay the process's end.
    """
    loop, finished_event = asyncio.get_running_loop(), asyncio.Event()

    def shut_down() -> None:
        processor.shutdown()  # type: ignore[no-untyped-call]  # the method has no annotations
        if not loop.is_closed():
            loop.call_soon_threadsafe(finished_event.set)

    threading.Thread(target=shut_down, name="traces-shutdown", daemon=True).start()
    try:
        async with asyncio.timeout(MAX_LAST_EXPORT_S):
            await finished_event.wait()
    except TimeoutError:
        pass  # spans may be lost: they are not billing data

"""The metrics page that a gateway serves to Prometheus."""

import asyncio
import socket
from collections.abc import Iterator

import aiohttp
import pytest
import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from inference.recording.metrics.metrics_server import serve_metrics_page
from tests.stack.ports import free_port

HOST = "127.0.0.1"


def make_families() -> Iterator[Metric]:
    family = CounterMetricFamily("caret_things", "Things.", labels=["kind"])
    family.add_metric(["good"], 3)
    yield family
    yield GaugeMetricFamily("caret_now", "Now.", value=1)


async def _get(port: int, path: str = "/metrics") -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession(f"http://{HOST}:{port}") as session,
        session.get(path) as response,
    ):
        return response.status, response.headers["Content-Type"], await response.text()


async def test_the_page_has_the_prometheus_text_format() -> None:
    port = free_port()

    async with serve_metrics_page([make_families], host=HOST, port=port):
        status, content_type, text = await _get(port)

    assert (status, content_type) == (200, "text/plain; version=0.0.4")
    assert '# TYPE caret_things_total counter\ncaret_things_total{kind="good"} 3.0\n' in text
    assert "caret_now 1.0\n" in text


async def test_other_paths_may_return_bytes() -> None:
    port = free_port()

    async with serve_metrics_page(
        [make_families], host=HOST, port=port, extra_pages={"/slow": lambda: b"some"}
    ):
        status, content_type, text = await _get(port, "/slow")

    assert (status, content_type, text) == (200, "application/octet-stream", "some")


async def test_unknown_paths_are_not_found() -> None:
    port = free_port()

    async with serve_metrics_page([make_families], host=HOST, port=port):
        status, _, _ = await _get(port, "/")

    assert status == 404


async def test_a_port_in_use_is_logged_and_the_gateway_continues() -> None:
    with socket.socket() as listener, structlog.testing.capture_logs() as logs:
        listener.bind((HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]

        async with serve_metrics_page([make_families], host=HOST, port=port):
            pass

    (line,) = logs
    assert (line["event"], line["port"]) == ("metrics.not_served", port)
    assert "use another port" in line["reason"]


async def test_the_event_loop_runs_between_metric_families() -> None:
    port = free_port()
    numbers: list[int] = []

    def iterate_families() -> Iterator[Metric]:
        for number in range(3):
            asyncio.get_running_loop().call_soon(numbers.append, number)
            # The value is the number of callbacks that the event loop has run so far.
            yield GaugeMetricFamily(f"caret_{number}", "", value=len(numbers))

    async with serve_metrics_page([iterate_families], host=HOST, port=port):
        _, _, text = await _get(port)

    assert all(f"caret_{number} {number}.0" in text for number in range(3))


async def test_the_page_is_not_served_after_the_context_is_left() -> None:
    port = free_port()
    async with serve_metrics_page([make_families], host=HOST, port=port):
        pass

    with pytest.raises(aiohttp.ClientConnectorError):
        await _get(port)

"""A real Prometheus reads a gateway's metrics: Caret's rules and charts find their series.

The charts are those of Caret's Grafana dashboards.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.gateway.gateway_stack import Frame, Site, request_completion, wait_until
from tests.stack.monitoring import read_panels
from tests.stack.prometheus import Prometheus, prometheus

pytestmark = [pytest.mark.engine, pytest.mark.deep]  # long

# Titles of charts that have data as soon as completions end, without outcomes or cancels.
_EXPECTED_CHARTS = {
    "1. First token p99 by mode",
    "2. Cancelled",
    "3. Cache hits",
    "5. Engines in use",
    "Stages, p99",
    "Requests by finish reason",
    "Available replicas",
    "Tokens per second",
    "Connected clients",
    "Event loop lag, p99",
}
_ON_SCREEN = "On screen"  # a chart whose data come from outcomes


@pytest.fixture(scope="module")
def server(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder: Path = tmp_path_factory.mktemp("prometheus")
    with prometheus(folder, [site.metrics_url]) as started:
        yield started


def _charts() -> list[tuple[str, str]]:
    """Return the title and the expression of each line of each chart."""
    return [
        (panel.title, expression) for panel in read_panels() for expression in panel.expressions
    ]


def _split_charts(server: Prometheus) -> tuple[set[str], set[str]]:
    """Return the titles of charts with a line without data, and of charts with a line with data.

    A chart can have lines of both kinds.
    """
    empty_charts: set[str] = set()
    charts_with_data: set[str] = set()
    for title, expression in _charts():
        titles = charts_with_data if server.series(expression) else empty_charts
        titles.add(title)
    return empty_charts, charts_with_data


async def test_rules_and_charts_find_the_gateways_metrics(
    site: Site, long_frame: Frame, server: Prometheus
) -> None:
    async def complete_and_find_data() -> bool:
        # Rates need counters that grow between two scrapes.
        async with site.stream() as stream:
            frame_id = site.new_id()
            await request_completion(stream, {**long_frame, "id": frame_id, "max_tokens": 4})
            outcome = {"event": "shown", "chars": 1, "after_ms": 300, "display_ms": 80}
            await stream.send({"type": "outcome", "id": frame_id, **outcome})
        empty_charts, charts_with_data = await asyncio.to_thread(_split_charts, server)
        return charts_with_data >= _EXPECTED_CHARTS and _ON_SCREEN not in empty_charts

    has_data = await wait_until(complete_and_find_data, timeout_s=60.0)
    empty_charts, charts_with_data = _split_charts(server)

    assert has_data, (_EXPECTED_CHARTS - charts_with_data, empty_charts & {_ON_SCREEN})
    assert [target["health"] for target in server.targets()] == ["up"]
    rules = server.rules()
    assert len(rules) > 40
    assert {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")} == {}
    assert {rule["health"] for rule in rules} == {"ok"}
    # Nothing is wrong. Only this alert may fire, because no control plane is monitored here.
    firing = {rule["name"] for rule in rules if rule.get("state") == "firing"}
    assert firing <= {"CaretBeatMetricsMissing"}

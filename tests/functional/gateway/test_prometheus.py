"""A real Prometheus reads a gateway's metrics: Caret's rules and charts find their series."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.gateway.gateway_stack import Frame, Site, request_completion, wait_until
from tests.stack.monitoring import read_panels
from tests.stack.prometheus import Prometheus, prometheus

pytestmark = pytest.mark.engine

# Charts with data when completions end by themselves and have no outcomes.
_SHOWN = {
    "1. First token p99 by type",
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


@pytest.fixture(scope="module")
def server(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder: Path = tmp_path_factory.mktemp("prometheus")
    with prometheus(folder, [site.metrics_url]) as started:
        yield started


def _charts() -> list[tuple[str, str]]:
    """Return title and expression of each chart."""
    return [
        (panel.title, expression) for panel in read_panels() for expression in panel.expressions
    ]


async def test_rules_and_charts_find_the_gateways_metrics(
    site: Site, long_frame: Frame, server: Prometheus
) -> None:
    async def are_shown() -> bool:
        # Rates need counters that grow between two scrapes.
        async with site.stream() as stream:
            await request_completion(stream, {**long_frame, "id": site.new_id(), "max_tokens": 4})
        titles = await asyncio.to_thread(
            lambda: {title for title, expression in _charts() if server.series(expression)}
        )
        return titles >= _SHOWN

    is_shown = await wait_until(are_shown, timeout_s=60.0)
    with_data = {title for title, expression in _charts() if server.series(expression)}

    assert is_shown, _SHOWN - with_data
    assert [target["health"] for target in server.targets()] == ["up"]
    rules = server.rules()
    assert len(rules) > 40
    assert {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")} == {}
    assert {rule["health"] for rule in rules} == {"ok"}
    # Nothing is wrong, so no alert fires.
    firing = {rule["name"] for rule in rules if rule.get("state") == "firing"}
    assert firing <= {"CaretBeatMetricsMissing"}  # no control plane is monitored here

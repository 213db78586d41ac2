"""Alerting rules and dashboard use existing metrics and link to existing runbooks."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import redis
from prometheus_client.core import Metric

from caret.client.synthetic_probe import ProbeMetrics
from caret.foundation.clock import SystemClock
from caret.local.paths import REPOSITORY
from console.web.request_metrics import registry as console_registry
from inference.recording.metrics.completion_metrics import CompletionMetrics
from inference.recording.metrics.engine_metrics import (
    EngineMetricsPoller,
    EngineMetricsReader,
    MetricValues,
)
from inference.recording.metrics.gateway_metrics import EventLoopLagProbe
from tenants.base.worker.metrics import WorkerMetricsCollector
from tests.stack.monitoring import MONITORING, read_panels

RUNBOOKS = REPOSITORY / "platform" / "docs" / "runbooks"
RULES = ("alert_rules.yaml", "log-rules.yaml")
# The five charts for the person on call, in this order.
ON_CALL_FIVE = [
    "1. First token p99 by mode",
    "2. Cancelled",
    "3. Cache hits",
    "4. Acceptance",
    "5. Engines in use",
]
# Alerts for the thresholds of the specification, each with the figure that a panel shows.
THRESHOLD_ALERTS = {
    "CaretCancellationRateHigh": "caret:cancelled:ratio_rate5m",
    "CaretAcceptanceLow": "caret:accepted:ratio_rate6h",
    "CaretCacheHitRateLow": "caret:cached:ratio_rate10m",
    "CaretSpeculationAcceptanceLow": "avg by (pool, language) (caret_speculation_acceptance)",
    "CaretGpuUtilizationLow": "caret:gpu_busy:ratio",
}
# A metric in an expression: not part of a recorded series (`caret:...`), a quoted text or a path.
_NAME = re.compile(r"(?<![\w:\"/.])caret_[a-z0-9_]+(?![\w:\"])")
_RECORDED = re.compile(r"caret:[a-z0-9_]+:[a-z0-9_]+")
# Names of metric families that only a complete gateway creates, found in the source.
_FAMILY = re.compile(r"(CounterMetricFamily|GaugeMetricFamily|_make_gauge)\(\s*\"(caret_[a-z_]+)\"")
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


class _NoEngine(EngineMetricsReader):
    async def read(self, replica: object) -> MetricValues | None:
        raise AssertionError("this test must not query an engine")


class _NoRedis(redis.Redis):
    """Stands for a Redis that contains the counts of one task, and nothing else."""

    def __init__(self) -> None:
        pass

    def hgetall(self, name: Any) -> Any:
        return {b"last|any": b"1"}

    def llen(self, name: Any) -> int:
        return 0

    xlen = llen

    def xrange(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def time(self, **_: Any) -> tuple[int, int]:
        return 0, 0


def test_every_used_metric_is_exported() -> None:
    used_metrics = {name for text in _expressions() for name in _NAME.findall(text)}

    assert len(used_metrics) > 20
    assert used_metrics - _exported_metrics() == set()


def test_every_recording_rule_exists_and_is_used() -> None:
    rules = (MONITORING / "alert_rules.yaml").read_text()
    recorded = set(re.findall(r"- record: (\S+)", rules))

    assert {name for text in _expressions() for name in _RECORDED.findall(text)} == recorded


def test_every_alert_links_to_a_runbook_that_names_it() -> None:
    index = (RUNBOOKS / "README.md").read_text()
    rows = dict(re.findall(r"^\| \[([a-z-]+\.md)\]\(\1\) \| (.*) \|$", index, re.MULTILINE))

    texts = "".join((MONITORING / name).read_text() for name in RULES)
    alerts_with_runbook = [alert for alert, _ in _alerts()]
    assert alerts_with_runbook == re.findall(r"- alert: (\w+)", texts)
    for alert, runbook in _alerts():
        assert runbook.parent == RUNBOOKS
        assert runbook.exists()
        assert f"`{alert}`" in rows[runbook.name]


def test_the_runbook_index_names_no_removed_alert() -> None:
    index = (RUNBOOKS / "README.md").read_text()

    assert set(re.findall(r"`(Caret\w+)`", index)) == {alert for alert, _ in _alerts()}


def test_the_dashboard_starts_with_the_five_on_call_charts() -> None:
    charts = [panel.title for panel in read_panels() if panel.expressions]

    assert charts[:5] == ON_CALL_FIVE


def test_each_threshold_alert_uses_a_figure_that_a_panel_shows() -> None:
    rules = (MONITORING / "alert_rules.yaml").read_text()
    displayed_figures = {expression for panel in read_panels() for expression in panel.expressions}

    for alert, figure in THRESHOLD_ALERTS.items():
        rule = rules.split(f"- alert: {alert}\n")[1].split("- alert:")[0]
        assert figure in rule
        assert figure in displayed_figures


def test_log_alerts_match_events_that_the_code_logs() -> None:
    rules = (MONITORING / "log-rules.yaml").read_text()
    events = {name for names in re.findall(r'event=~"([^"]+)"', rules) for name in names.split("|")}
    code = "".join(path.read_text() for path in (REPOSITORY / "tenants").rglob("*.py"))

    assert len(events) > 5
    assert {event for event in events if f'"{event}"' not in code} == set()


def test_failed_purges_and_failed_deletions_of_content_raise_an_alert() -> None:
    rules = (MONITORING / "log-rules.yaml").read_text()

    rule = rules.split("- alert: CaretPurgeFailing\n")[1].split("- alert:")[0]

    assert re.findall(r'event=~"([^"]+)"', rule) == [
        "retention.not_purged",
        "content.erasure_failed",
    ]


def _expressions() -> Iterator[str]:
    """Yield the expressions of all panels, and the lines of the rules that may be expressions."""
    for panel in read_panels():
        yield from panel.expressions
    for line in (MONITORING / "alert_rules.yaml").read_text().splitlines():
        if not line.lstrip().startswith(("#", "-", "runbook:", "summary:")):
            yield line


def _alerts() -> list[tuple[str, Path]]:
    """Return the name and the runbook of each alert that has one."""
    texts = "".join((MONITORING / name).read_text() for name in RULES)
    # The lines between the two must not begin the next alert.
    alerts = re.findall(r"- alert: (\w+)\n(?:(?! *- alert).*\n)*?\s+runbook: (\S+)", texts)
    return [(alert, REPOSITORY / runbook) for alert, runbook in alerts]


def _exported_metrics() -> set[str]:
    families = [
        *CompletionMetrics().collect(),
        *EngineMetricsPoller(_NoEngine(), list_replicas=tuple).collect(),  # no replicas
        *EventLoopLagProbe(SystemClock()).collect(),
        *ProbeMetrics().registry.collect(),
        *console_registry.collect(),
        *WorkerMetricsCollector(_NoRedis(), queues=["any"]).collect(),
    ]
    return {*_samples(families), *_samples_in_code()}


def _samples(families: Iterable[Metric]) -> Iterator[str]:
    """Yield the names of the time series of these metrics."""
    for family in families:
        yield from (family.name + suffix for suffix in _SUFFIXES[family.type])


def _samples_in_code() -> Iterator[str]:
    """Yield the names of the time series of the metrics that _FAMILY finds in the source."""
    for path in (REPOSITORY / "inference" / "recording").rglob("*.py"):
        for kind, name in _FAMILY.findall(path.read_text()):
            yield f"{name}_total" if kind == "CounterMetricFamily" else name

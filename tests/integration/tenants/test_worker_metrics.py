"""Metrics exported by Celery's scheduler, beat: finished tasks, pending usage, pending tasks."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
import redis
import requests
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from caret.contracts.usage import USAGE_FIELD
from tenants.base.worker.metrics import BOUNDS_S, KEY, TaskCounts, WorkerMetricsCollector
from tests.stack.ports import free_port
from tests.stack.services import Services
from tests.stack.worker import ROOT

TIMEOUT_S = 300.0
_STREAM = "planted-usage"
# The values of samples, by the sample's name and its labels (pairs of name and value).
MetricValues = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def connection(services: Services) -> Iterator[redis.Redis]:
    """Connect to Redis, which contains no task counts before and after the test."""
    with redis.Redis.from_url(services.redis_url) as connection:
        connection.delete(KEY)
        yield connection
        connection.delete(KEY)


def _read_values(families: list[Metric]) -> MetricValues:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def _find_value(values: MetricValues, name: str, **labels: str) -> float | None:
    return values.get((name, frozenset(labels.items())))


def test_tasks_are_counted_by_result_and_duration(
    connection: redis.Redis,
) -> None:
    counts = TaskCounts(connection)
    counts.on_finished("bill", took_s=0.02, has_failed=False, now_s=100.0)
    counts.on_finished("bill", took_s=3.0, has_failed=False, now_s=200.0)
    counts.on_finished("bill", took_s=10_000.0, has_failed=True, now_s=300.0)
    counts.on_finished("purge", took_s=1.0, has_failed=True, now_s=300.0)

    values = _read_values(list(WorkerMetricsCollector(connection, queues=[]).collect()))

    assert _find_value(values, "caret_celery_tasks_total", task="bill", result="succeeded") == 2
    assert _find_value(values, "caret_celery_tasks_total", task="bill", result="failed") == 1
    assert (
        _find_value(values, "caret_celery_task_last_success_timestamp_seconds", task="bill")
        == 200.0
    )
    # A task that has never succeeded has no time of its last success, not even zero.
    assert (
        _find_value(values, "caret_celery_task_last_success_timestamp_seconds", task="purge")
        is None
    )
    buckets = [
        _find_value(values, "caret_celery_task_duration_seconds_bucket", task="bill", le=le)
        for le in (*map(str, BOUNDS_S), "+Inf")
    ]
    # The bounds are 0.01, 0.05, 0.25, 1, 5, 30, 120 and 600 s, and infinity. Each bucket counts all
    # tasks that took no longer than its bound.
    assert buckets == [0, 1, 1, 1, 2, 2, 2, 2, 3]
    assert _find_value(values, "caret_celery_task_duration_seconds_sum", task="bill") == 10_003.02


def test_pending_usage_reports_the_age_of_its_oldest_entry(
    connection: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    # IDs in a stream must increase, so no old entry can be added to the stream of other tests.
    monkeypatch.setattr("tenants.base.worker.metrics.USAGE_STREAM", _STREAM)
    collector = WorkerMetricsCollector(connection, queues=[])
    before = _read_values(list(collector.collect()))
    seconds, _microseconds = connection.time()
    for age_s in (500, 20):
        # The ID of an entry is its time in milliseconds, and a number within the millisecond.
        connection.xadd(_STREAM, {USAGE_FIELD: b"x"}, id=f"{(seconds - age_s) * 1000}-0")
    try:
        values_with_entries = _read_values(list(collector.collect()))
    finally:
        connection.delete(_STREAM)

    assert _find_value(before, "caret_usage_stream_oldest_seconds") == 0
    assert _find_value(values_with_entries, "caret_usage_stream_length") == 2
    assert (
        500
        <= cast(float, _find_value(values_with_entries, "caret_usage_stream_oldest_seconds"))
        < 800
    )


def test_pending_tasks_are_counted_by_queue(connection: redis.Redis) -> None:
    connection.rpush("planted-queue", b"one", b"two")
    try:
        values = _read_values(
            list(WorkerMetricsCollector(connection, queues=["planted-queue", "other"]).collect())
        )
    finally:
        connection.delete("planted-queue")

    assert _find_value(values, "caret_celery_queue_length", queue="planted-queue") == 2
    assert _find_value(values, "caret_celery_queue_length", queue="other") == 0


@contextmanager
def _running_celery(
    services: Services, folder: Path, *arguments: str, **settings: str
) -> Iterator[Path]:
    """Run a Celery command with these settings, and yield the path of its log."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
    environment = {**os.environ, **services.process_mark, "PYTHONPATH": paths, **settings}
    log = folder / f"{arguments[0]}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "caret.celery", *arguments],
            cwd=ROOT,
            env=environment,
            stderr=output,
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait(timeout=120)


def test_beat_exports_metrics_of_the_workers_tasks(
    services: Services, connection: redis.Redis, tmp_path: Path
) -> None:
    port = free_port()
    # An empty option: beat writes no file with its process ID.
    beat = ("beat", "--pidfile=", "--schedule", str(tmp_path / "schedule"))
    with (
        # Only one queue, so that a busy machine can run each task before it expires.
        _running_celery(services, tmp_path, "worker", "--concurrency", "1", "--queues", "ingest"),
        _running_celery(
            services, tmp_path, *beat, CARET_CONTROL_PLANE_METRICS_PORT=str(port)
        ) as log,
    ):
        values = _wait_for_ingestion(f"http://127.0.0.1:{port}/metrics")

    assert values is not None, log.read_text()
    assert (
        cast(
            float,
            _find_value(values, "caret_celery_task_duration_seconds_count", task="ingest_usage"),
        )
        >= 1
    )
    last_success_s = _find_value(
        values, "caret_celery_task_last_success_timestamp_seconds", task="ingest_usage"
    )
    assert abs(cast(float, last_success_s) - time.time()) < TIMEOUT_S
    assert _find_value(values, "caret_celery_queue_length", queue="ingest") is not None


def _wait_for_ingestion(url: str) -> MetricValues | None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        try:
            text = requests.get(url, timeout=30).text
        except requests.RequestException:
            time.sleep(0.5)
            continue
        values = _read_values(list(text_string_to_metric_families(text)))
        if _find_value(values, "caret_celery_tasks_total", task="ingest_usage", result="succeeded"):
            return values
        time.sleep(0.5)
    return None

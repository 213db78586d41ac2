"""Prometheus metrics of the control plane: tasks, queues, and usage that is not ingested yet.

The processes that run tasks live only for a short time, so they store their counts in Redis. The
beat process exports them; there is only one such process. So the counts survive a restart, and
workers need no port.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import redis
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from caret.contracts.usage import USAGE_STREAM

KEY: Final = "caret:task-metrics"  # of the hash in Redis
# Upper bounds of the buckets for durations. A run that finds nothing to do takes 10 ms. The longest
# purges and exports take 30 minutes, and count in the bucket without a bound.
BOUNDS_S: Final = (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0)
_INFINITE: Final = "+Inf"
# The fields of the hash are named KIND|TASK, and those of buckets KIND|TASK|BOUND. `seconds` is the
# sum of the durations, and `last` is the Unix time of the last success. The kinds are:
_SUCCEEDED, _FAILED, _SECONDS, _BUCKET, _LAST = "succeeded", "failed", "seconds", "bucket", "last"


class TaskCounts:
    """Counts finished tasks. A task that is killed at its time limit is not counted."""

    def __init__(self, connection: redis.Redis) -> None:
        self._connection = connection

    def on_finished(self, task: str, *, took_s: float, has_failed: bool, now_s: float) -> None:
        """Count one finished task. `now_s` is the Unix time. One round trip.

        Raises redis.RedisError.
        """
        upper_bound = next((str(bound) for bound in BOUNDS_S if took_s <= bound), _INFINITE)
        with self._connection.pipeline(transaction=False) as pipeline:
            pipeline.hincrby(KEY, f"{_FAILED if has_failed else _SUCCEEDED}|{task}", 1)
            pipeline.hincrbyfloat(KEY, f"{_SECONDS}|{task}", took_s)
            pipeline.hincrby(KEY, f"{_BUCKET}|{task}|{upper_bound}", 1)
            if not has_failed:
                pipeline.hset(KEY, f"{_LAST}|{task}", str(now_s))
            pipeline.execute()


class WorkerMetricsCollector(Collector):
    """Collector that reads the counts from Redis at each scrape.

    Prometheus sees a redis.RedisError as a failed scrape.
    """

    def __init__(self, connection: redis.Redis, *, queues: Sequence[str]) -> None:
        self._connection = connection
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        counts = {
            name.decode(): float(value)
            for name, value in cast(dict[bytes, bytes], self._connection.hgetall(KEY)).items()
        }
        yield from _collect_tasks(counts)
        yield self._collect_queues()
        yield from self._collect_usage()

    def _collect_queues(self) -> Metric:
        lengths = GaugeMetricFamily(
            "caret_celery_queue_length", "Tasks that no worker has taken yet.", labels=["queue"]
        )
        for queue in self._queues:
            lengths.add_metric([queue], self._connection.llen(queue))
        return lengths

    def _collect_usage(self) -> Iterator[Metric]:
        num_waiting = self._connection.xlen(USAGE_STREAM)
        oldest: Any = self._connection.xrange(USAGE_STREAM, count=1)
        seconds, micros = self._connection.time()
        age_s = 0.0
        if oldest:  # the ID of a stream entry begins with the time of Redis' clock in ms
            began_ms = int(oldest[0][0].partition(b"-")[0])
            age_s = max(0.0, seconds + micros / 1_000_000 - began_ms / 1000)
        yield GaugeMetricFamily(
            "caret_usage_stream_length",
            "Batches of usage records that are delivered but not ingested.",
            value=num_waiting,
        )
        yield GaugeMetricFamily(
            "caret_usage_stream_oldest_seconds",
            "Age of the oldest batch that is not ingested; 0: none.",
            value=age_s,
        )


def _collect_tasks(counts: dict[str, float]) -> Iterator[Metric]:
    finished_tasks = CounterMetricFamily(
        "caret_celery_tasks", "Tasks that workers have finished.", labels=["task", "result"]
    )
    durations = HistogramMetricFamily(
        "caret_celery_task_duration_seconds", "Duration of finished tasks.", labels=["task"]
    )
    last_success = GaugeMetricFamily(
        "caret_celery_task_last_success_timestamp_seconds",
        "Unix time of the last success.",
        labels=["task"],
    )
    for task in sorted({name.split("|")[1] for name in counts}):
        for result in (_SUCCEEDED, _FAILED):
            finished_tasks.add_metric([task, result], counts.get(f"{result}|{task}", 0.0))
        durations.add_metric(
            [task], _read_buckets(counts, task), sum_value=counts.get(f"{_SECONDS}|{task}", 0.0)
        )
        if (moment_s := counts.get(f"{_LAST}|{task}")) is not None:
            last_success.add_metric([task], moment_s)
    yield from (finished_tasks, durations, last_success)


def _read_buckets(counts: dict[str, float], task: str) -> list[tuple[str, float]]:
    """Return the buckets of a task's durations.

    As Prometheus expects, the count of a bucket contains the counts of all lower buckets.
    """
    total, buckets = 0.0, []
    for upper_bound in (*map(str, BOUNDS_S), _INFINITE):
        total += counts.get(f"{_BUCKET}|{task}|{upper_bound}", 0.0)
        buckets.append((upper_bound, total))
    return buckets

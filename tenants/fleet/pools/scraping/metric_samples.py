"""Parsed metrics of gateways, with queries. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[tuple[str, str], ...]  # sorted by name
Series = dict[str, dict[Labels, float]]  # by sample name
_STARTED: Final = "process_start_time_seconds"


class MetricSamples:
    """The metrics of one gateway, or of several combined."""

    def __init__(self, series: Mapping[str, Mapping[Labels, float]]) -> None:
        self._series = series

    def all_values(self, name: str, **labels: str) -> Iterator[tuple[dict[str, str], float]]:
        """Yield labels and value of the samples that have these labels."""
        for held, value in self._series.get(name, {}).items():
            named = dict(held)
            if labels.items() <= named.items():
                yield named, value

    def sum(self, name: str, **labels: str) -> float:
        return sum(value for _, value in self.all_values(name, **labels))

    def max(self, name: str, **labels: str) -> float | None:
        """Return the highest value; None: no samples."""
        return max((value for _, value in self.all_values(name, **labels)), default=None)

    def values_of(self, name: str, label: str) -> list[str]:
        """Return the distinct values of a label, sorted."""
        return sorted({labels[label] for labels, _ in self.all_values(name) if label in labels})

    @property
    def started_s(self) -> float | None:
        """The start time of the process in Unix seconds; None: not exported."""
        return self.max(_STARTED)

    @property
    def series(self) -> Series:
        return {name: dict(held) for name, held in self._series.items()}


def parse(text: str) -> MetricSamples:
    """Parse Prometheus metrics. Raises ValueError."""
    series: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not math.isfinite(sample.value):  # for example an engine's mean without observations
                continue
            labels = tuple(sorted(sample.labels.items()))
            series.setdefault(sample.name, {})[labels] = sample.value
    return MetricSamples(series)


def merge_samples(every: Iterable[MetricSamples]) -> MetricSamples:
    """Return the sums of all samples."""
    summed: Series = {}
    for samples in every:
        for name, held in samples.series.items():
            into = summed.setdefault(name, {})
            for labels, value in held.items():
                into[labels] = into.get(labels, 0.0) + value
    return MetricSamples(summed)


def counter_increase(before: MetricSamples, after: MetricSamples) -> MetricSamples:
    """Return the increase of counters. A counter that fell was reset by a restart."""
    grown: Series = {}
    for name, held in after.series.items():
        then = before.series.get(name, {})
        grown[name] = {
            labels: value - then.get(labels, 0.0) if value >= then.get(labels, 0.0) else value
            for labels, value in held.items()
        }
    return MetricSamples(grown)


def quantile_s(samples: MetricSamples, histogram: str, share: float, **labels: str) -> float | None:
    """Estimate a quantile like Prometheus' `histogram_quantile`; None: no observations.

    Interpolates linearly within a bucket. Values beyond the last bound count as that bound.
    """
    counts: dict[float, float] = {}
    for named, value in samples.all_values(f"{histogram}_bucket", **labels):
        bound = float(named["le"])
        counts[bound] = counts.get(bound, 0.0) + value
    bounds = sorted(counts)
    if not bounds or counts[bounds[-1]] <= 0:
        return None
    rank = share * counts[bounds[-1]]
    low, passed = 0.0, 0.0
    for bound in bounds:
        if counts[bound] >= rank:
            if bound == float("inf"):
                return low
            within = counts[bound] - passed
            return low + (bound - low) * ((rank - passed) / within if within else 1.0)
        low, passed = bound, counts[bound]
    return low

"""Parsed metrics of gateways, with queries. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[tuple[str, str], ...]  # sorted by name
Series = dict[str, dict[Labels, float]]  # by sample name
_START_TIME: Final = "process_start_time_seconds"


class MetricSamples:
    """The metrics of one gateway, or of several combined."""

    def __init__(self, series: Mapping[str, Mapping[Labels, float]]) -> None:
        self._series = series

    def all_values(self, name: str, **labels: str) -> Iterator[tuple[dict[str, str], float]]:
        """Yield the labels and the value of each sample with this name and these labels."""
        for label_pairs, value in self._series.get(name, {}).items():
            sample_labels = dict(label_pairs)
            if labels.items() <= sample_labels.items():
                yield sample_labels, value

    def sum(self, name: str, **labels: str) -> float:
        return sum(value for _, value in self.all_values(name, **labels))

    def max(self, name: str, **labels: str) -> float | None:
        """Return the highest value; None: no samples."""
        return max((value for _, value in self.all_values(name, **labels)), default=None)

    def values_of(self, name: str, label: str) -> list[str]:
        """Return the distinct values of a label in the samples with this name, sorted."""
        return sorted({labels[label] for labels, _ in self.all_values(name) if label in labels})

    @property
    def started_s(self) -> float | None:
        """The start time of the process in Unix seconds; None: not exported."""
        return self.max(_START_TIME)

    @property
    def series(self) -> Series:
        return {name: dict(values) for name, values in self._series.items()}


def parse_metrics(text: str) -> MetricSamples:
    """Parse Prometheus metrics. Raises ValueError."""
    series: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not math.isfinite(sample.value):  # for example an engine's mean without observations
                continue
            labels = tuple(sorted(sample.labels.items()))
            series.setdefault(sample.name, {})[labels] = sample.value
    return MetricSamples(series)


def merge_samples(all_samples: Iterable[MetricSamples]) -> MetricSamples:
    """Return the sums of the samples with the same name and labels."""
    sums: Series = {}
    for samples in all_samples:
        for name, values in samples.series.items():
            totals = sums.setdefault(name, {})
            for labels, value in values.items():
                totals[labels] = totals.get(labels, 0.0) + value
    return MetricSamples(sums)


def compute_counter_increase(before: MetricSamples, after: MetricSamples) -> MetricSamples:
    """Return the increase of counters. Other metrics in the result have no meaning.

    A restart resets a counter to 0. If its value has fallen, the increase is its new value.
    """
    increases: Series = {}
    for name, values in after.series.items():
        old_values = before.series.get(name, {})
        increases[name] = {
            labels: value - old_values.get(labels, 0.0)
            if value >= old_values.get(labels, 0.0)
            else value
            for labels, value in values.items()
        }
    return MetricSamples(increases)


def compute_quantile_s(
    samples: MetricSamples, histogram: str, share: float, **labels: str
) -> float | None:
    """Estimate a quantile of a histogram in seconds; None: no observations.

    Works like Prometheus' `histogram_quantile`: interpolates linearly within a bucket, and counts
    values beyond the last finite bound as that bound. `share` is from 0 to 1.
    """
    counts: dict[float, float] = {}  # by upper bound: observations up to this bound
    for sample_labels, value in samples.all_values(f"{histogram}_bucket", **labels):
        upper_bound = float(sample_labels["le"])
        counts[upper_bound] = counts.get(upper_bound, 0.0) + value
    bounds = sorted(counts)
    num_observations = counts[bounds[-1]] if bounds else 0.0
    if num_observations <= 0:
        return None
    rank = share * num_observations
    low, num_below = 0.0, 0.0
    for upper_bound in bounds:
        if counts[upper_bound] >= rank:
            if upper_bound == float("inf"):
                return low
            num_in_bucket = counts[upper_bound] - num_below
            share_of_bucket = (rank - num_below) / num_in_bucket if num_in_bucket else 1.0
            return low + (upper_bound - low) * share_of_bucket
        low, num_below = upper_bound, counts[upper_bound]
    return low

"""Counters and histograms for Prometheus. An update takes a quarter of a microsecond.

An update of prometheus_client's metrics needs a lock and takes a microsecond or more. A completion
updates fifteen metrics. The metrics here need no lock, because only one event loop uses them.

Labels must have a limited number of values. Prometheus reads one line for each combination of label
values; a histogram has a line for each bound. No line is removed while the process runs.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily


class FastCounters:
    """One metric: a counter for each combination of label values."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str] = ()) -> None:
        """`name` has no `_total`, which the text format appends."""
        self._name_and_documentation = (name, documentation)
        self._labels = labels
        self._values: dict[tuple[str, ...], float] = {}

    def add(self, value: float, *label_values: str) -> None:
        self._values[label_values] = self._values.get(label_values, 0) + value

    def get(self, *label_values: str) -> float:
        return self._values.get(label_values, 0)

    def to_family(self) -> CounterMetricFamily:
        family = CounterMetricFamily(*self._name_and_documentation, labels=self._labels)
        for label_values, value in self._values.items():
            family.add_metric(label_values, value)
        return family


class Histogram:
    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` ascend. A value counts for the first bound that is at least the value."""
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # the last one: above all bounds
        self.total = 0.0  # sum of the values

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


class FastHistograms:
    """One metric: a histogram for each combination of label values."""

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> None:
        self._name_and_documentation = (name, documentation)
        self._labels = labels
        self._bounds = bounds
        self._bound_labels: Final = [*(f"{upper_bound:g}" for upper_bound in bounds), "+Inf"]
        self._histograms: dict[tuple[str, ...], Histogram] = {}

    def observe(self, value: float, *label_values: str) -> None:
        histogram = self._histograms.get(label_values)
        if histogram is None:
            histogram = self._histograms[label_values] = Histogram(self._bounds)
        histogram.observe(value)

    def to_family(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(*self._name_and_documentation, labels=self._labels)
        for label_values, histogram in self._histograms.items():
            buckets = list(zip(self._bound_labels, accumulate(histogram.counts), strict=True))
            family.add_metric(label_values, buckets, histogram.total)
        return family

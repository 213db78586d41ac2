"""A long run without faults: does the memory or the number of descriptors of processes grow?

The slopes are those of straight lines through the samples (least squares). They leave out the first
part of the time, in which caches fill: a gateway caches data about texts for up to ten minutes. The
course of the memory (`course_mb`) covers the whole time.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.benchmarks.processes import Neighbours
from tests.benchmarks.results import Report, percentile, say
from tests.chaos.environment import World
from tests.chaos.resource_usage import ProcessResources, resources_by_process
from tests.chaos.usage_rows import settled_balance

# Allowed growth of the memory from the end of the settling phase to the end of the run: this share,
# or this many MB if that is more.
MAX_GROWTH: Final = 0.05
MAX_GROWTH_MB: Final = 5.0
MAX_MORE_DESCRIPTORS: Final = 5.0  # in the same time
_EVERY_S: Final = 2.0  # from one sample to the next
_SETTLING: Final = 0.4  # share of the time that the slopes leave out
_NUM_COURSE_POINTS: Final = 15  # means in `course_mb`
_BILLING_S: Final = 60.0
_MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float
    resources: ProcessResources


@dataclass(frozen=True, slots=True)
class Trend:
    """The growth of one process."""

    memory_mb: float  # at the end, by the fitted line
    more_memory_mb: float
    more_descriptors: float
    course_mb: tuple[float, ...]  # means of equal parts of the time, from its beginning

    @property
    def is_flat(self) -> bool:
        allowed_mb = max(MAX_GROWTH_MB, MAX_GROWTH * self.memory_mb)
        return self.more_memory_mb <= allowed_mb and self.more_descriptors <= MAX_MORE_DESCRIPTORS


def fit_trend(samples: Sequence[Sample], *, settled_s: float) -> Trend:
    """Return the trend of the samples. `settled_s` is the time at which the settling phase ends.

    At least two samples must be later.
    """
    settled = [sample for sample in samples if sample.at_s > settled_s]
    at_s = np.array([sample.at_s for sample in settled])
    memory = np.array([sample.resources.memory_mb for sample in settled])
    descriptors = np.array([sample.resources.descriptors for sample in settled])
    span_s = at_s[-1] - at_s[0]
    slope, start = np.polyfit(at_s - at_s[0], memory, 1)
    more_descriptors = np.polyfit(at_s - at_s[0], descriptors, 1)[0] * span_s
    return Trend(
        memory_mb=round(float(start + slope * span_s), 1),
        more_memory_mb=round(float(slope * span_s), 2),
        more_descriptors=round(float(more_descriptors), 2),
        # If there are fewer samples than points, some parts are empty.
        course_mb=tuple(
            round(float(part.mean()), 1)
            for part in np.array_split(
                [sample.resources.memory_mb for sample in samples], _NUM_COURSE_POINTS
            )
            if part.size
        ),
    )


def soak(world: World, report: Report, *, minutes: float) -> None:
    """Sample the resources of all processes for these minutes, and report which ones grew."""
    samples: defaultdict[str, list[Sample]] = defaultdict(list)
    began_s, neighbours = time.time(), Neighbours()
    while (now_s := time.time()) < began_s + minutes * _MINUTE_S:
        for (service, _pid), resources in resources_by_process(world).items():
            samples[service].append(Sample(now_s, resources))
        time.sleep(_EVERY_S)
    say("Comparing results with bills")
    settled_s = began_s + _SETTLING * minutes * _MINUTE_S
    trends = {
        service: fit_trend(samples_of_part, settled_s=settled_s)
        for service, samples_of_part in samples.items()
    }
    _report(
        world,
        report,
        trends,
        began_s=began_s,
        cores_used_by_others=round(neighbours.num_cores(), 2),
    )


def _report(
    world: World,
    report: Report,
    trends: dict[str, Trend],
    *,
    began_s: float,
    cores_used_by_others: float,
) -> None:
    notes = world.notebook.since(began_s)
    balance, _ = settled_balance(world, world.notebook.read, timeout_s=_BILLING_S)
    num_failed = sum(note.is_failed for note in notes)
    growing = [service for service, trend in trends.items() if not trend.is_flat]
    first_ms = [note.first_ms for note in notes if note.first_ms is not None]
    report.judged(
        "soak",
        len(growing),
        "processes that grow",
        passed=not growing and not num_failed and balance.is_balanced,
        target="none, none failed, all billed once",
        growing=growing,
        sent=len(notes),
        completed=sum(note.is_served for note in notes),
        shed=sum(note.is_shed for note in notes),
        failed=num_failed,
        first_ms_p99=round(percentile(first_ms, 99), 1) if first_ms else None,
        missing=balance.missing,
        doubled=balance.doubled,
        different=balance.different,
        unseen=balance.unseen,
        broken=balance.broken,
        trends={service: _trend_fields(trend) for service, trend in trends.items()},
        cores_used_by_others=cores_used_by_others,
    )


def _trend_fields(trend: Trend) -> dict[str, Any]:
    return {
        "memory_mb": trend.memory_mb,
        "more_memory_mb": trend.more_memory_mb,
        "more_descriptors": trend.more_descriptors,
        "course_mb": trend.course_mb,
    }

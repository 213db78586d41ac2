"""Counts of times by size, from which percentiles of any period are told, as counts add up and
percentiles do not.

Sizes are logarithmic, as in DDSketch (Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable
quantile sketch with relative-error guarantees", VLDB 2019): what is told is within RELATIVE_ERROR
of a time that was measured.
"""

from collections.abc import Iterable, Mapping
from math import log
from typing import Final

RELATIVE_ERROR: Final = 0.01
# Times of which nobody wants to know how much shorter they were.
MIN_MS: Final = 0.01
_BASE: Final = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)


def bucket_sql(column: str) -> str:
    """Of a time in ms, as an expression: our own names only."""
    return f"ceil(ln(greatest({column}, {MIN_MS})) / {log(_BASE)!r})::int"


def merge_histograms(histograms: Iterable[tuple[Iterable[int], Iterable[int]]]) -> dict[int, int]:
    """Of sizes and their counts, one of all."""
    found: dict[int, int] = {}
    for sizes, counts in histograms:
        for size, number in zip(sizes, counts, strict=True):
            found[size] = found.get(size, 0) + number
    return found


def percentile_ms(histogram: Mapping[int, int], percent: float) -> float | None:
    """None: nothing was measured."""
    rank = percent / 100 * (sum(histogram.values()) - 1)
    passed = 0
    for size in sorted(histogram):
        passed += histogram[size]
        if passed > rank:
            return 2 * _BASE**size / (_BASE + 1)
    return None

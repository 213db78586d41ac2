"""Histograms of latency, from which percentiles of any period are computed.

The counts of several periods can be added up, but percentiles cannot. Buckets are logarithmic, as
in DDSketch (Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable quantile sketch with
relative-error guarantees", VLDB 2019). The error of a percentile is therefore at most
RELATIVE_ERROR, for times from MIN_MS on.
"""

from collections.abc import Iterable, Mapping
from math import log
from typing import Final

RELATIVE_ERROR: Final = 0.01
MIN_MS: Final = 0.01  # all shorter times are in the same bucket
_BASE: Final = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)


def build_bucket_sql(column: str) -> str:
    """Return the SQL expression for the bucket number of the time in `column`, in milliseconds.

    `column` must be a constant of the code, never input, and the rows must not have NULL in it:
    Postgres' `greatest` ignores NULL, so such a row would count as the shortest time.
    """
    return f"ceil(ln(greatest({column}, {MIN_MS})) / {log(_BASE)!r})::int"


def merge_histograms(histograms: Iterable[tuple[Iterable[int], Iterable[int]]]) -> dict[int, int]:
    """Add up histograms, each given as bucket numbers and the buckets' counts."""
    merged: dict[int, int] = {}
    for buckets, counts in histograms:
        for bucket, count in zip(buckets, counts, strict=True):
            merged[bucket] = merged.get(bucket, 0) + count
    return merged


def compute_percentile_ms(histogram: Mapping[int, int], percent: float) -> float | None:
    """Return a percentile of a histogram (counts by bucket number); None: it is empty."""
    rank = percent / 100 * (sum(histogram.values()) - 1)
    num_so_far = 0
    for bucket in sorted(histogram):
        num_so_far += histogram[bucket]
        if num_so_far > rank:
            # The time whose relative distance to both ends of the bucket is RELATIVE_ERROR.
            return 2 * _BASE**bucket / (_BASE + 1)
    return None

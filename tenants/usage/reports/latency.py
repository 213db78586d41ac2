"""Latency by mode, and the load of engines.

A tenant's figures without a filter come from rollups: they cover any period, with an error of at
most RELATIVE_ERROR. With a filter, or for the actor's own usage, they come from the usage records,
because rollups have no percentiles by language, editor or user. These figures are exact, but cover
at most MAX_EXACT. Only rollups have display latencies.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Aggregate,
    BooleanField,
    Count,
    ExpressionWrapper,
    F,
    FloatField,
    Q,
    QuerySet,
    Sum,
)

from caret.contracts.latency_targets import FIRST_TOKEN_TARGETS_MS
from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.ids import TenantId
from tenants.models import LatencyDay, LatencyHour, UsageRecord
from tenants.usage.rollups.latency_histogram import compute_percentile_ms, merge_histograms

# Of a longer period, only the end is measured: sorting the records of three months takes seconds.
MAX_EXACT: Final = timedelta(days=7)
# Completed requests: ended by the model, by the filter at a good point, or at max_tokens.
COMPLETED: Final = Q(finish_reason__in=[FinishReason.STOP, FinishReason.LENGTH])
WITH_FIRST_TOKEN: Final = COMPLETED & Q(first_token_ms__isnull=False)


@dataclass(frozen=True, slots=True)
class LatencyRow:
    mode: Mode
    completed: int  # requests with a measured time to the first token
    p50_ms: float | None  # of the times to the first token; None: nothing was completed
    p99_ms: float | None
    in_flight_at_replica: int  # sum of the requests already at the replica, over all `sent`
    sent: int  # requests sent to an engine
    # From sending the request to text on the screen, as clients report it; None: not known.
    display_p50_ms: float | None = None
    display_p99_ms: float | None = None

    @property
    def target_ms(self) -> float:
        """The mode's target for the time to the first token, at the 99th percentile."""
        return FIRST_TOKEN_TARGETS_MS[self.mode]

    @property
    def is_on_target(self) -> bool:
        return self.p99_ms is not None and self.p99_ms < self.target_ms


@dataclass(frozen=True, slots=True)
class LatencyReport:
    # The beginning of the measured period, which may be shorter than the requested one.
    since: datetime
    current: Mapping[Mode, LatencyRow]  # of the measured period
    before: Mapping[Mode, LatencyRow]  # of the preceding period of the same length
    is_exact: bool  # False: from rollups

    @property
    def load(self) -> float | None:
        """The mean number of requests that a gateway already had at a replica when it sent another.

        None: no request was sent.
        """
        return _compute_load(self.current)

    @property
    def load_before(self) -> float | None:
        return _compute_load(self.before)


class MedianAndP99(Aggregate):
    """The 50th and the 99th percentile, as a list; None: there are no values."""

    function = "percentile_cont"
    template = "%(function)s(array[0.5, 0.99]) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = ArrayField(FloatField())


def get_measured_since(*, begins_at: datetime, ends_at: datetime) -> datetime:
    """Return the time from which latency is measured exactly: at most MAX_EXACT before the end."""
    return max(begins_at, ends_at - MAX_EXACT)


def measure_latency(
    records: QuerySet[UsageRecord], *, begins_at: datetime, ends_at: datetime, min_users: int = 1
) -> LatencyReport:
    """Measure latency from usage records. Must run inside the tenant's scope.

    One query over the primary key. A mode is left out of a period in which it had 1 to
    `min_users` - 1 users. (0 users: only service keys.)
    """
    since = get_measured_since(begins_at=begins_at, ends_at=ends_at)
    # By `is_current`.
    rows_by_period: dict[bool, dict[Mode, LatencyRow]] = {True: {}, False: {}}
    measured = _select_measured(records, since, ends_at)
    # Counting users takes most of the time, so users are counted only if needed.
    if min_users > 1:
        people = Count("user_id", distinct=True)
        measured = measured.annotate(people=people).exclude(people__gt=0, people__lt=min_users)
    for row in measured:
        mode = Mode(row["mode"])
        rows_by_period[row["is_current"]][mode] = _to_latency_row(mode, row)
    return LatencyReport(
        since, current=rows_by_period[True], before=rows_by_period[False], is_exact=True
    )


def read_latency_rollups(
    tenant_id: TenantId, *, begins_at: datetime, ends_at: datetime, by_hour: bool
) -> LatencyReport:
    """Read latency from rollups of hours or UTC days. One query.

    Must run inside the tenant's scope.
    """
    table = LatencyHour if by_hour else LatencyDay
    rows = table.objects.filter(
        tenant_id=tenant_id,
        starts_at__gte=begins_at - (ends_at - begins_at),  # includes the preceding period
        starts_at__lt=ends_at,
    )
    rows_by_period: dict[bool, defaultdict[Mode, list[_LatencyRollup]]]  # by `is_current`
    rows_by_period = {True: defaultdict(list), False: defaultdict(list)}
    for starts_at, mode, *values in rows.values_list("starts_at", "mode", *_LatencyRollup._fields):
        rows_by_period[starts_at >= begins_at][Mode(mode)].append(_LatencyRollup(*values))
    current, before = (
        {mode: _sum_rollups(mode, rollups) for mode, rollups in rows_by_period[is_current].items()}
        for is_current in (True, False)
    )
    return LatencyReport(begins_at, current=current, before=before, is_exact=False)


class _LatencyRollup(NamedTuple):
    sizes: list[int]  # bucket numbers, see tenants.models.rollup
    counts: list[int]  # of requests, for each of `sizes`
    in_flight_at_replica: int
    sent: int
    # The same for display latencies. None: the row is older than these columns.
    display_sizes: list[int] | None
    display_counts: list[int] | None


def _sum_rollups(mode: Mode, rollups: list[_LatencyRollup]) -> LatencyRow:
    histogram = merge_histograms((rollup.sizes, rollup.counts) for rollup in rollups)
    display_histogram = merge_histograms(
        (rollup.display_sizes or (), rollup.display_counts or ()) for rollup in rollups
    )
    return LatencyRow(
        mode,
        completed=sum(histogram.values()),
        p50_ms=compute_percentile_ms(histogram, 50),
        p99_ms=compute_percentile_ms(histogram, 99),
        in_flight_at_replica=sum(rollup.in_flight_at_replica for rollup in rollups),
        sent=sum(rollup.sent for rollup in rollups),
        display_p50_ms=compute_percentile_ms(display_histogram, 50),
        display_p99_ms=compute_percentile_ms(display_histogram, 99),
    )


def _select_measured(
    records: QuerySet[UsageRecord], since: datetime, ends_at: datetime
) -> QuerySet[UsageRecord, Any]:
    """Select the measured period (`is_current`) and the preceding period of the same length."""
    is_current = ExpressionWrapper(Q(occurred_at__gte=since), output_field=BooleanField())
    return (
        records.filter(occurred_at__gte=since - (ends_at - since), occurred_at__lt=ends_at)
        .annotate(is_current=is_current)
        .values("is_current", "mode")
        .annotate(
            completed=Count("request_id", filter=WITH_FIRST_TOKEN),
            percentiles=MedianAndP99("first_token_ms", filter=WITH_FIRST_TOKEN),
            in_flight_at_replica=Sum(F("num_in_flight_at_replica"), default=0),
            sent=Count("num_in_flight_at_replica"),
        )
        .order_by()
    )


def _to_latency_row(mode: Mode, row: Mapping[str, Any]) -> LatencyRow:
    p50_ms, p99_ms = row["percentiles"] or (None, None)
    return LatencyRow(
        mode,
        completed=row["completed"],
        p50_ms=p50_ms,
        p99_ms=p99_ms,
        in_flight_at_replica=row["in_flight_at_replica"],
        sent=row["sent"],
    )


def _compute_load(latencies: Mapping[Mode, LatencyRow]) -> float | None:
    num_requests = sum(row.sent for row in latencies.values())
    if not num_requests:
        return None
    return sum(row.in_flight_at_replica for row in latencies.values()) / num_requests

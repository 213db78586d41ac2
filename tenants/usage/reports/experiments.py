"""Comparison of the variants of experiments.

The key of a variant is `<experiment>/<variant>`. A user stays in one variant, so each variant is a
group of users, and a small group is suppressed. Users without a variant form another group.
First-token latencies come from usage records. Of a long period, only the last days are measured
(`latency.MAX_EXACT`).
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Avg, Count, StdDev

from caret.contracts.policy import Mode
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import UsageRecord
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.breakdown import build_rows, compute_breakdown
from tenants.usage.reports.confidence_intervals import (
    IntervalEstimate,
    difference_interval,
    mean_interval,
    proportion_interval,
)
from tenants.usage.reports.filters import build_filter_condition
from tenants.usage.reports.latency import WITH_FIRST_TOKEN, get_measured_since
from tenants.usage.reports.queries import (
    GroupBy,
    ReportKind,
    ReportQuery,
    ReportRow,
    check_report_period,
    is_limited_to_own,
    read_min_group_size,
    select_rollups,
)
from tenants.usage.reports.suppression.suppressed_figures import find_suppressed
from tenants.usage.rollups.operations import find_complete_until

CONTROL: Final = "control"
# With fewer suggestions, the confidence interval is too wide. With this many, the interval of the
# acceptance rate is up to 10 percentage points wide.
MIN_SHOWN: Final = 400
_NO_VARIANT: Final = ""
_COUNTERS: Final = (
    "requests",
    "shown",
    "accepted",
    "partially_accepted",
    "checked_30",
    "retained_30",
)


@dataclass(frozen=True, slots=True)
class VariantMetrics:
    """The metrics of a variant, or their differences from the control. None: unknown."""

    acceptance: IntervalEstimate | None
    persistence: IntervalEstimate | None  # after 30 s
    first_token_ms: IntervalEstimate | None  # mean over inline requests


_NO_METRICS: Final = VariantMetrics(acceptance=None, persistence=None, first_token_ms=None)


@dataclass(frozen=True, slots=True)
class VariantView:
    name: str  # within its experiment
    is_control: bool
    row: ReportRow  # its users and counters; may be suppressed
    measured: VariantMetrics  # all None if the variant is suppressed
    difference_to_control: VariantMetrics  # of the control: all None

    @property
    def has_few_suggestions(self) -> bool:
        return self.row.counts is not None and self.row.counts.shown < MIN_SHOWN


@dataclass(frozen=True, slots=True)
class ExperimentView:
    name: str
    control: str  # name of the control: `control`, or the first variant by name
    variants: list[VariantView]  # the control first


@dataclass(frozen=True, slots=True)
class ExperimentsReport:
    experiments: list[ExperimentView]
    first_tokens_since: datetime  # first-token latencies are measured from this time on
    complete_until: datetime | None  # None: nothing was counted yet
    min_users: int  # variants with fewer users are suppressed


def read_experiments(*, actor: Actor, query: ReportQuery) -> ExperimentsReport:
    """Return the experiments by name. Up to four queries; up to two more with a filter.

    Raises Forbidden, InvalidValue.
    """
    is_own = is_limited_to_own(actor, ReportKind.QUALITY)
    check_report_period(query)
    since = get_measured_since(begins_at=query.starts_at, ends_at=query.ends_at)
    with tenant_scope(actor.tenant_id):
        rows = select_rollups(actor, query, is_own=is_own)
        breakdown = compute_breakdown(rows, query, (GroupBy.VARIANT,), names=_COUNTERS)
        min_users = 1 if is_own else read_min_group_size(actor)
        suppressed = find_suppressed(
            actor, ReportKind.QUALITY, query, breakdown, min_users=min_users
        )
        mean_latencies = _read_mean_latencies(
            actor, query, since, is_own=is_own, min_users=min_users
        )
        until = find_complete_until(actor.tenant_id)
    groups = breakdown.groups.get(GroupBy.VARIANT, {})
    suppressed_variants = suppressed.groups.get(GroupBy.VARIANT, {})
    by_experiment: defaultdict[str, list[ReportRow]] = defaultdict(list)
    for row in build_rows(groups, suppressed_variants):
        # Suppression needs the group of users without a variant, because the total includes it. The
        # report does not show it.
        if row.key != _NO_VARIANT:
            by_experiment[row.key.rpartition("/")[0]].append(row)
    experiments = [
        _build_experiment(name, variants, mean_latencies)
        for name, variants in sorted(by_experiment.items())
    ]
    return ExperimentsReport(experiments, since, until, min_users)


def _read_mean_latencies(
    actor: Actor, query: ReportQuery, since: datetime, *, is_own: bool, min_users: int
) -> dict[str, IntervalEstimate | None]:
    """Return mean first-token latencies by a variant's key.

    Variants of 1 to `min_users` - 1 users are left out. (0 users: only service keys.)
    """
    records = UsageRecord.objects.filter(
        WITH_FIRST_TOKEN,
        build_filter_condition(actor, query.filter, is_for_records=True),
        tenant_id=actor.tenant_id,
        occurred_at__gte=since,
        occurred_at__lt=query.ends_at,
        mode=Mode.INLINE,
        variant__gt="",
    )
    if is_own:
        records = records.filter(user_id=actor.user_id)
    rows = (
        records.values("variant")
        .annotate(
            mean=Avg("first_token_ms"),
            deviation=StdDev("first_token_ms", sample=True),
            num=Count("request_id"),
            people=Count("user_id", distinct=True),
        )
        .exclude(people__gt=0, people__lt=min_users)
    )
    return {
        str(row["variant"]): mean_interval(row["mean"], row["deviation"], row["num"])
        for row in rows
    }


def _build_experiment(
    name: str, rows: Iterable[ReportRow], mean_latencies: dict[str, IntervalEstimate | None]
) -> ExperimentView:
    by_name = {row.key.rpartition("/")[2]: row for row in rows}
    control = CONTROL if CONTROL in by_name else min(by_name)
    measured = {variant: _compute_metrics(row, mean_latencies) for variant, row in by_name.items()}
    # The control first, then by name.
    ordered = sorted(by_name, key=lambda variant: (variant != control, variant))
    return ExperimentView(
        name,
        control,
        [
            VariantView(
                name=variant,
                is_control=variant == control,
                row=by_name[variant],
                measured=measured[variant],
                difference_to_control=_compare_with_control(
                    measured[variant], measured[control], is_same=variant == control
                ),
            )
            for variant in ordered
        ],
    )


def _compute_metrics(row: ReportRow, mean_latencies: dict[str, Any]) -> VariantMetrics:
    counts = row.counts
    if counts is None:
        return _NO_METRICS
    return VariantMetrics(
        proportion_interval(counts.accepted + counts.partially_accepted, counts.shown),
        proportion_interval(counts.retained_30, counts.checked_30),
        mean_latencies.get(row.key),
    )


def _compare_with_control(
    metrics: VariantMetrics, control: VariantMetrics, *, is_same: bool
) -> VariantMetrics:
    if is_same:
        return _NO_METRICS
    return VariantMetrics(
        difference_interval(metrics.acceptance, control.acceptance),
        difference_interval(metrics.persistence, control.persistence),
        difference_interval(metrics.first_token_ms, control.first_token_ms),
    )

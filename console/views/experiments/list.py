"""The variants of each experiment, with their metrics and their differences from the control."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.lists.csv_response import CsvRows
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.lists.sorting import with_query
from console.sign_in.current_member import CurrentMember, member_required
from console.usage_filters.file_notes import notes_of_figures
from console.usage_filters.filter_form import UsageFilterForm, UsageFilters, read_usage_filters
from console.usage_filters.number_format import format_count, format_number, format_share
from tenants.base.pagination import Page
from tenants.compliance.exports.rows import Value
from tenants.usage.reports.confidence_intervals import IntervalEstimate
from tenants.usage.reports.experiments import (
    MIN_SHOWN,
    ExperimentsReport,
    ExperimentView,
    VariantView,
    read_experiments,
)
from tenants.usage.reports.queries import PERMISSIONS, ReportKind


class _VariantOfExperiment(NamedTuple):
    """A row of the CSV file."""

    experiment: ExperimentView
    variant: VariantView


@dataclass(frozen=True, slots=True)
class ExperimentMetric:
    name: str  # attribute of VariantMetrics
    title: str | Promise
    better: str  # more | less: more means that a greater value is better
    is_share: bool  # False: milliseconds


@dataclass(frozen=True, slots=True)
class ExperimentCell:
    """A metric of a variant."""

    title: str  # of the metric
    value: str  # "–": unknown
    interval: str  # confidence interval of the value; "": unknown
    difference: str  # from the control, with its interval; "": this is the control, or unknown
    kind: str  # of the verdict's <c-badge>: good | bad | off
    verdict: str  # on the difference, such as "better"; "": there is no difference


@dataclass(frozen=True, slots=True)
class VariantRow:
    name: str
    url: str  # of the variant's requests
    is_control: bool
    is_hidden: bool  # True: the figures are suppressed, and the texts are ""
    # Numbers of users, requests and shown suggestions.
    users: str
    requests: str
    shown: str
    cells: list[ExperimentCell]  # in the order of METRICS


@dataclass(frozen=True, slots=True)
class ExperimentCard:
    name: str
    lines: list[VariantRow]


METRICS: Final = (
    ExperimentMetric("acceptance", _("Acceptance rate"), "more", is_share=True),
    ExperimentMetric("persistence", _("Persisted after 30 s"), "more", is_share=True),
    ExperimentMetric("first_token_ms", _("Mean first token, inline"), "less", is_share=False),
)


@dataclass(frozen=True, slots=True)
class ExperimentPage(Page[ExperimentView]):
    report: ExperimentsReport


def _find_experiments(query: ListQuery) -> ExperimentPage:
    usage_filters = read_usage_filters(query.request, now=query.now)
    experiments_report = read_experiments(actor=query.actor, query=usage_filters.report_query)
    return ExperimentPage(
        experiments_report.experiments, next_cursor=None, report=experiments_report
    )


def _build_context(query: ListQuery, page: ExperimentPage) -> dict[str, Any]:
    usage_filters = read_usage_filters(query.request, now=query.now)
    return {
        "usage_filters": usage_filters,
        "report": page.report,
        "cards": [_present_experiment(usage_filters, experiment) for experiment in page.rows],
        "metrics": METRICS,
        "min_shown": MIN_SHOWN,
        "csv_url": with_query(query.request, **{"as": "csv"}),
    }


def _present_experiment(usage_filters: UsageFilters, experiment: ExperimentView) -> ExperimentCard:
    return ExperimentCard(
        experiment.name,
        [
            _present_variant(usage_filters, experiment.name, variant)
            for variant in experiment.variants
        ],
    )


def _present_variant(
    usage_filters: UsageFilters, experiment: str, variant: VariantView
) -> VariantRow:
    row = variant.row
    # The full name of a variant without an experiment has no slash.
    full_name = f"{experiment}/{variant.name}" if experiment else variant.name
    return VariantRow(
        name=variant.name,
        url=f"{reverse('console:usage-requests')}?{usage_filters.with_filter(variant=full_name)}",
        is_control=variant.is_control,
        is_hidden=row.counts is None,
        users="" if row.users is None else format_count(row.users),
        requests="" if row.counts is None else format_count(row.counts.requests),
        shown="" if row.counts is None else format_count(row.counts.shown),
        cells=[_build_cell(metric, variant) for metric in METRICS],
    )


def _build_cell(metric: ExperimentMetric, variant: VariantView) -> ExperimentCell:
    format_value = format_share if metric.is_share else _format_ms
    value: IntervalEstimate | None = getattr(variant.measured, metric.name)
    difference: IntervalEstimate | None = getattr(variant.difference_to_control, metric.name)
    kind, verdict = _judge_difference(
        metric, difference, has_few_suggestions=variant.has_few_suggestions
    )
    return ExperimentCell(
        title=str(metric.title),
        value="–" if value is None else format_value(value.value),
        interval="" if value is None else _format_interval(value, format_value),
        difference="" if difference is None else _format_difference(metric, difference),
        kind=kind,
        verdict=verdict,
    )


def _judge_difference(
    metric: ExperimentMetric, difference: IntervalEstimate | None, *, has_few_suggestions: bool
) -> tuple[str, str]:
    """Return the kind of the badge, and the verdict.

    `has_few_suggestions`: fewer than MIN_SHOWN suggestions of the variant were shown. These are too
    few to judge a share.
    """
    if difference is None:
        return "off", ""
    if has_few_suggestions and metric.is_share:
        return "off", gettext("not enough data")
    if not difference.excludes_zero:
        return "off", gettext("not significant")
    is_better = (difference.value > 0) == (metric.better == "more")
    return ("good", gettext("better")) if is_better else ("bad", gettext("worse"))


def _format_interval(value: IntervalEstimate, format_value: Callable[[float], str]) -> str:
    return gettext("%(low)s to %(high)s") % {
        "low": format_value(value.low),
        "high": format_value(value.high),
    }


def _format_difference(metric: ExperimentMetric, difference: IntervalEstimate) -> str:
    scale = 100 if metric.is_share else 1  # shares differ by percentage points
    low, value, high = (
        _format_signed(bound * scale)
        for bound in (difference.low, difference.value, difference.high)
    )
    unit = gettext("points") if metric.is_share else "ms"
    return gettext("%(value)s %(unit)s (%(low)s to %(high)s)") % {
        "value": value,
        "unit": unit,
        "low": low,
        "high": high,
    }


def _format_signed(value: float) -> str:
    sign = "+" if value > 0 else ("−" if value < 0 else "")
    return f"{sign}{format_number(abs(value), 1)}"


def _format_ms(value: float) -> str:
    return f"{format_number(value, 1)} ms"


def _list_notes(query: ListQuery, rows: CsvRows[ExperimentView]) -> list[str]:
    assert isinstance(rows.last_page, ExperimentPage)
    usage_filters = read_usage_filters(query.request, now=query.now)
    return notes_of_figures(usage_filters, rows.last_page.report)


def _build_count_column(name: str) -> Callable[[_VariantOfExperiment], Value]:
    """Return the column of a counter; suppressed variants have no value."""

    def read_value(row: _VariantOfExperiment) -> Value:
        counts = row.variant.row.counts
        return None if counts is None else getattr(counts, name)

    return read_value


def _build_estimate_column(
    metric: str, group: str, part: str
) -> Callable[[_VariantOfExperiment], Value]:
    """Return the column of a part of an estimate.

    `group` is the attribute of VariantView that contains the metric. `part` is `value`, `low` or
    `high`.
    """

    def read_value(row: _VariantOfExperiment) -> Value:
        estimate: IntervalEstimate | None = getattr(getattr(row.variant, group), metric)
        return None if estimate is None else getattr(estimate, part)

    return read_value


def _build_columns() -> dict[str, Callable[[_VariantOfExperiment], Value]]:
    columns: dict[str, Callable[[_VariantOfExperiment], Value]] = {
        "experiment": lambda row: row.experiment.name,
        "variant": lambda row: row.variant.name,
        "control": lambda row: row.variant.is_control,
        "users": lambda row: row.variant.row.users,
        "requests": _build_count_column("requests"),
        "shown": _build_count_column("shown"),
    }
    for metric in METRICS:
        for suffix, group in (("", "measured"), ("_difference", "difference_to_control")):
            name = f"{metric.name}{suffix}"
            columns[name] = _build_estimate_column(metric.name, group, "value")
            columns[f"{name}_low"] = _build_estimate_column(metric.name, group, "low")
            columns[f"{name}_high"] = _build_estimate_column(metric.name, group, "high")
    return columns


_EXPERIMENTS: Final = ListPage(
    template="console/experiments/list.html",
    fragment="console/experiments/_list.html",
    query=_find_experiments,
    form=UsageFilterForm,
    context=_build_context,
    rejects_invalid_filters=True,
    csv=CsvFile(
        "experiments",
        _build_columns(),
        split=lambda experiment: [
            _VariantOfExperiment(experiment, variant) for variant in experiment.variants
        ],
        notes=_list_notes,
    ),
)


@require_GET
@member_required
def experiments(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    # One of the permissions is enough.
    if not any(map(member.actor.has_permission, PERMISSIONS[ReportKind.QUALITY])):
        raise PermissionDenied
    return _EXPERIMENTS.render(request, member)

"""The variants of each experiment, with their metrics and their differences from the control."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.layout.lists.csv_response import csv_error, csv_response
from console.sign_in.current_member import CurrentMember, member_required
from console.usage_filters.file_notes import notes_of_figures
from console.usage_filters.filter_form import UsageFilters, read_usage_filters
from console.usage_filters.number_format import count, number, share
from tenants.usage.reports.confidence_intervals import IntervalEstimate
from tenants.usage.reports.experiments import (
    MIN_SHOWN,
    ExperimentsReport,
    ExperimentView,
    VariantMetrics,
    VariantView,
    read_experiments,
)
from tenants.usage.reports.queries import PERMISSIONS, ReportKind

_PAGE: Final = "console/experiments/list.html"
_PART: Final = "console/experiments/_list.html"


@dataclass(frozen=True, slots=True)
class ExperimentMetric:
    name: str  # attribute of VariantMetrics
    title: str | Promise
    better: str  # more | less
    is_share: bool


@dataclass(frozen=True, slots=True)
class ExperimentCell:
    title: str
    value: str
    interval: str
    difference: str  # from the control; "": this is the control, or unknown
    kind: str  # kind of <c-badge>: good | bad | off
    verdict: str


@dataclass(frozen=True, slots=True)
class VariantRow:
    name: str
    url: str
    is_control: bool
    has_few_users: bool
    is_hidden: bool
    users: str
    requests: str
    shown: str
    cells: list[ExperimentCell]


@dataclass(frozen=True, slots=True)
class ExperimentCard:
    name: str
    control: str
    lines: list[VariantRow]


METRICS: Final = (
    ExperimentMetric("acceptance", _("Acceptance rate"), "more", is_share=True),
    ExperimentMetric("persistence", _("Persisted after 30 s"), "more", is_share=True),
    ExperimentMetric("first_token_ms", _("Mean first token, inline"), "less", is_share=False),
)


@require_http_methods(["GET"])
@member_required
def experiments(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if not any(map(member.actor.has_permission, PERMISSIONS[ReportKind.QUALITY])):
        raise PermissionDenied
    question = read_usage_filters(request, now=timezone.now())
    is_file = request.GET.get("format") == "csv"
    if is_file and question.is_invalid:
        return csv_error(question.form)
    found = read_experiments(actor=member.actor, asked=question.report_query)
    if is_file:
        return _csv_response(question, found)
    context = {
        "question": question,
        "found": found,
        "cards": [_to_card(question, each) for each in found.experiments],
        "metrics": METRICS,
        "min_shown": MIN_SHOWN,
        "csv_url": f"?{question.with_filter(format='csv')}",
    }
    status = 400 if question.is_invalid else 200
    return render_page(request, member, _PAGE, context, part=_PART, status=status)


def _to_card(question: UsageFilters, found: ExperimentView) -> ExperimentCard:
    return ExperimentCard(
        found.name,
        found.control,
        [_to_variant_row(question, found.name, variant) for variant in found.variants],
    )


def _to_variant_row(question: UsageFilters, experiment: str, variant: VariantView) -> VariantRow:
    row = variant.row
    full_name = f"{experiment}/{variant.name}" if experiment else variant.name
    return VariantRow(
        name=variant.name,
        url=f"{reverse('console:usage-requests')}?{question.with_filter(variant=full_name)}",
        is_control=variant.is_control,
        has_few_users=variant.has_few_users,
        is_hidden=row.counts is None,
        users="" if row.users is None else count(row.users),
        requests="" if row.counts is None else count(row.counts.requests),
        shown="" if row.counts is None else count(row.counts.shown),
        cells=[_to_cell(metric, variant) for metric in METRICS],
    )


def _to_cell(metric: ExperimentMetric, variant: VariantView) -> ExperimentCell:
    write = share if metric.is_share else _format_ms
    value: IntervalEstimate | None = getattr(variant.measured, metric.name)
    apart: IntervalEstimate | None = getattr(variant.difference_to_control, metric.name)
    kind, verdict = _to_verdict(metric, apart, is_few=variant.has_few_users)
    return ExperimentCell(
        title=str(metric.title),
        value="–" if value is None else write(value.value),
        interval="" if value is None else _format_interval(value, write),
        difference="" if apart is None else _format_difference(metric, apart),
        kind=kind,
        verdict=verdict,
    )


def _to_verdict(
    metric: ExperimentMetric, apart: IntervalEstimate | None, *, is_few: bool
) -> tuple[str, str]:
    if apart is None:
        return "off", ""
    if is_few and metric.is_share:
        return "off", gettext("not enough data")
    if not apart.excludes_zero:
        return "off", gettext("not significant")
    is_better = (apart.value > 0) == (metric.better == "more")
    return ("good", gettext("better")) if is_better else ("bad", gettext("worse"))


def _format_interval(value: IntervalEstimate, write: Callable[[float], str]) -> str:
    return gettext("%(low)s to %(high)s") % {"low": write(value.low), "high": write(value.high)}


def _format_difference(metric: ExperimentMetric, apart: IntervalEstimate) -> str:
    scale = 100 if metric.is_share else 1
    low, value, high = (
        _format_signed(each * scale) for each in (apart.low, apart.value, apart.high)
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
    return f"{sign}{number(abs(value), 1)}"


def _format_ms(value: float) -> str:
    return f"{number(value, 1)} ms"


def _csv_response(question: UsageFilters, found: ExperimentsReport) -> HttpResponse:
    names = [metric.name for metric in METRICS]
    head = ["experiment", "variant", "control", "users", "requests", "shown"]
    for name in names:
        head += [name, f"{name}_low", f"{name}_high"]
        head += [f"{name}_difference", f"{name}_difference_low", f"{name}_difference_high"]
    rows = [
        [*_csv_identity_cells(each, variant), *_csv_estimates(variant, names)]
        for each in found.experiments
        for variant in each.variants
    ]
    return csv_response("experiments", head, rows, notes=notes_of_figures(question, found))


def _csv_identity_cells(
    experiment: ExperimentView, variant: VariantView
) -> list[str | int | bool | None]:
    counts = variant.row.counts
    numbers = (None, None) if counts is None else (counts.requests, counts.shown)
    return [experiment.name, variant.name, variant.is_control, variant.row.users, *numbers]


def _csv_estimates(variant: VariantView, names: list[str]) -> list[float | None]:
    both: list[float | None] = []
    for name in names:
        for measured in (variant.measured, variant.difference_to_control):
            both += _csv_estimate(measured, name)
    return both


def _csv_estimate(measured: VariantMetrics, name: str) -> list[float | None]:
    value: IntervalEstimate | None = getattr(measured, name)
    return [None] * 3 if value is None else [value.value, value.low, value.high]

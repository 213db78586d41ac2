"""The pages of the tenant's prefix cache: its hits over time and by language, and its purge."""

from dataclasses import dataclass
from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from caret.contracts.policy import Isolation
from console.charts.chart import Chart, Series, build_bar_chart, build_line_chart
from console.layout.htmx import render_page
from console.layout.lists.csv_response import csv_response, format_csv_error
from console.layout.lists.pagination import wants_csv
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.usage_filters.display_names import display_name
from console.usage_filters.file_notes import notes_of_figures
from console.usage_filters.filter_form import UsageFilters, read_usage_filters
from console.usage_filters.number_format import COUNTS, SHARES, format_count, format_share
from console.usage_filters.time_buckets import list_times, values_over_time
from console.views.overview.presenters import cache_hit_rate
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.identity.members.tenant_status import purge_cache
from tenants.policy.queries import read_namespace
from tenants.usage.reports.counters import UsageCounters
from tenants.usage.reports.figures import UsageFigures, read_figures
from tenants.usage.reports.queries import GroupBy, ReportKind, ReportRow

_PURGE_PAGE: Final = "console/cache/purge.html"
_PAGE: Final = "console/cache/detail.html"
_PART: Final = "console/cache/_detail.html"  # reloaded by htmx
# The counters of the page and the CSV file.
_COUNTERS: Final = ("requests", "prompt_tokens", "prompt_tokens_with_cache_info", "cached_tokens")
# Title and description of each kind of isolation.
ISOLATION: Final[dict[Isolation, tuple[str | Promise, str | Promise]]] = {
    Isolation.SHARED: (
        _("Shared"),
        _(
            "A user's request can use prompts that other members' requests have cached. "
            "Other tenants cannot use them."
        ),
    ),
    Isolation.STRICT: (
        _("Strict"),
        _("Each user and each service key can use only their own cached prompts."),
    ),
}


@dataclass(frozen=True, slots=True)
class CacheRow:
    """The figures of one language, or the total. If suppressed, all texts but `name` are ""."""

    name: str  # of the language
    url: str  # of the requests behind the figures
    requests: str  # number of requests
    prompt_tokens: str  # of requests whose engine reported its cached tokens
    cached: str  # the part of `prompt_tokens` that came from the cache
    share: str  # cached share of `prompt_tokens`; "–": there are no such tokens
    percent: float | None  # `share` as a number from 0 to 100; None: no value, or suppressed
    is_hidden: bool  # True: the row is suppressed


@require_http_methods(["GET"])
@member_required
def cache(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    usage_filters = read_usage_filters(request, now=timezone.now())
    is_file = wants_csv(request)
    if is_file and usage_filters.is_invalid:
        return format_csv_error(usage_filters.form)
    usage_figures = read_figures(
        actor=member.actor,
        kind=ReportKind.USAGE,
        query=usage_filters.report_query,
        dimensions=(GroupBy.DAY, GroupBy.LANGUAGE),
        names=_COUNTERS,
    )
    if is_file:
        return _csv_response(usage_filters, usage_figures)
    rows = usage_figures.group_rows[GroupBy.LANGUAGE]
    namespace = read_namespace(actor=member.actor)
    context = {
        "usage_filters": usage_filters,
        "usage": usage_figures,
        "filters": usage_filters.list_filters(usage_figures.choices, usage_figures.teams),
        "namespace": namespace,
        "isolation": ISOLATION[namespace.isolation],
        "can_purge": member.actor.has_permission(Permission.WRITE_POLICY),
        "total": _to_row(usage_filters, usage_figures.total),
        "lines": [
            _to_row(usage_filters, row) for row in sorted(rows, key=_count_requests, reverse=True)
        ],
        "charts": _build_charts(usage_filters, usage_figures),
        # `as` is a Python keyword, so it cannot be a normal keyword argument.
        "csv_url": f"?{usage_filters.with_filter(**{'as': 'csv'})}",
    }
    status = 400 if usage_filters.is_invalid else 200
    return render_page(request, member, _PAGE, context, part=_PART, status=status)


def _build_charts(usage_filters: UsageFilters, usage_figures: UsageFigures) -> list[Chart]:
    rows, chart_times = usage_figures.group_rows[GroupBy.DAY], list_times(usage_filters)
    hits = [
        Series(gettext("Prefix-cache hits"), values_over_time(usage_filters, rows, cache_hit_rate))
    ]
    tokens = [
        Series(
            gettext("From cache"),
            values_over_time(usage_filters, rows, lambda counts: counts.cached_tokens),
        ),
        Series(gettext("Prefilled"), values_over_time(usage_filters, rows, _uncached_tokens)),
    ]
    return [
        build_line_chart(gettext("Prefix-cache hits"), chart_times, hits, SHARES, at_most=1),
        build_bar_chart(gettext("Prompt tokens"), chart_times, tokens, COUNTS),
    ]


def _uncached_tokens(counts: UsageCounters) -> float:
    return counts.prompt_tokens_with_cache_info - counts.cached_tokens


def _to_row(usage_filters: UsageFilters, row: ReportRow) -> CacheRow:
    counts = row.counts
    name = display_name("language", row.label) or gettext("unknown")
    if counts is None:
        return CacheRow(name, "", "", "", "", "", None, is_hidden=True)
    hit_rate = cache_hit_rate(counts)
    return CacheRow(
        name=name,
        url=f"{reverse('console:usage-requests')}?{usage_filters.with_filter(language=row.key)}",
        requests=format_count(counts.requests),
        prompt_tokens=format_count(counts.prompt_tokens_with_cache_info),
        cached=format_count(counts.cached_tokens),
        share="–" if hit_rate is None else format_share(hit_rate),
        percent=None if hit_rate is None else round(hit_rate * 100, 1),
        is_hidden=False,
    )


def _count_requests(row: ReportRow) -> int:
    """Return the number of requests, for sorting. Suppressed rows get -1, so they come last."""
    return row.counts.requests if row.counts else -1


def _csv_response(usage_filters: UsageFilters, usage_figures: UsageFigures) -> HttpResponse:
    lines = [
        _csv_cells(row)
        for row in [*usage_figures.group_rows[GroupBy.LANGUAGE], usage_figures.total]
    ]
    lines[-1][0] = "total"  # instead of a language
    notes = notes_of_figures(usage_filters, usage_figures)
    return csv_response("cache-by-language", ("language", *_COUNTERS), lines, notes=notes)


def _csv_cells(row: ReportRow) -> list[str | int | None]:
    return [
        row.key,
        *(None if row.counts is None else getattr(row.counts, name) for name in _COUNTERS),
    ]


class PurgeForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Recorded in the audit log."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
@step_up_required
def purge(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = PurgeForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _purge_cache(request, member, form):
        return redirect("console:cache")
    status = 400 if form.errors else 200
    return render_page(request, member, _PURGE_PAGE, {"form": form}, status=status)


def _purge_cache(request: HttpRequest, member: CurrentMember, form: PurgeForm) -> bool:
    """Purge the cache. Return False, with an error in the form, if the reason is invalid.

    A purge starts a new epoch of the cache namespace. Prompts of older epochs are not reused.
    """
    reason = form.cleaned_data["reason"]
    try:
        epoch = purge_cache(actor=member.actor, reason=reason, now=timezone.now())
    except InvalidValue as error:
        form.add_error(error.field if error.field in form.fields else None, translate_error(error))
        return False
    toast(request, gettext("Cache purged. Epoch %(epoch)d has started.") % {"epoch": epoch})
    return True

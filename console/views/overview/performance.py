"""The performance page: figures and charts of the period and the filters in the URL.

Top lists show the languages, editors and models with the most requests.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember, member_required
from console.usage_filters.display_names import display_name
from console.usage_filters.filter_form import UsageFilters, read_usage_filters
from console.usage_filters.last_minute import format_last_minute
from console.usage_filters.number_format import format_count, format_share
from console.views.overview.presenters import (
    build_accepted_chart,
    build_requests_chart,
    build_speed_lines,
    list_figures,
    overview_tabs,
)
from tenants.usage.reports.metric_definitions import acceptance
from tenants.usage.reports.overview import Overview, read_overview
from tenants.usage.reports.queries import GroupBy, ReportRow
from tenants.usage.requests.last_minute import read_last_minute

_PAGE: Final = "console/overview/performance.html"
_PART: Final = "console/overview/_performance.html"  # of the page, for htmx
_TOP_ROWS: Final = 5
_TITLES: Final[dict[GroupBy, str | Promise]] = {
    GroupBy.LANGUAGE: _("Languages"),
    GroupBy.EDITOR: _("Editors"),
    GroupBy.MODEL: _("Models"),
}


@dataclass(frozen=True, slots=True)
class TopLine:
    name: str
    url: str  # this page, filtered by the group
    requests: int
    requests_text: str
    acceptance: str  # the acceptance rate; "": not reported, or not visible to the user


@dataclass(frozen=True, slots=True)
class TopList:
    title: str
    lines: list[TopLine]
    max_requests: int  # of the first line; 1 if there is no line
    num_hidden: int  # suppressed groups
    url: str  # the report with all groups


@require_http_methods(["GET"])
@member_required
def performance(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return render_performance(request, member)


def render_performance(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Render the page, which users without READ_USAGE also get as the overview."""
    now = timezone.now()
    usage_filters = read_usage_filters(request, now=now)
    usage_overview = read_overview(actor=member.actor, query=usage_filters.report_query)
    context = {
        "tabs": overview_tabs(request, member.actor),
        "usage_filters": usage_filters,
        "usage": usage_overview,
        "filters": usage_filters.list_filters(usage_overview.choices, usage_overview.teams),
        "live": format_last_minute(read_last_minute(actor=member.actor, now=now), member.actor),
        "gateway_url": settings.GATEWAY_URL,
        **_build_figures(usage_filters, usage_overview),
    }
    status = 400 if usage_filters.is_invalid else 200
    return render_page(request, member, _PAGE, context, part=_PART, status=status)


def _build_figures(usage_filters: UsageFilters, usage_overview: Overview) -> dict[str, Any]:
    """Return figures, charts and lists; {} if there were no requests or the total is suppressed."""
    if usage_overview.total.counts is None or not usage_overview.total.counts.requests:
        return {}
    days = usage_overview.group_rows[GroupBy.DAY]
    return {
        "figures": list_figures(usage_filters, usage_overview),
        "speeds": build_speed_lines(usage_filters, usage_overview),
        "requests_chart": build_requests_chart(usage_filters, days),
        "accepted_chart": build_accepted_chart(usage_filters, days, usage_overview.quality),
        "tops": _build_top_lists(usage_filters, usage_overview),
    }


def _build_top_lists(usage_filters: UsageFilters, usage_overview: Overview) -> list[TopList]:
    return [_build_top_list(usage_filters, usage_overview, group_by) for group_by in _TITLES]


def _build_top_list(
    usage_filters: UsageFilters, usage_overview: Overview, group_by: GroupBy
) -> TopList:
    rows = usage_overview.group_rows[group_by]
    visible_rows = sorted((row for row in rows if row.counts), key=_count_requests, reverse=True)
    lines = [
        _to_top_line(usage_filters, usage_overview, group_by, row)
        for row in visible_rows[:_TOP_ROWS]
    ]
    return TopList(
        title=str(_TITLES[group_by]),
        lines=lines,
        max_requests=max((line.requests for line in lines), default=1),
        num_hidden=len(rows) - len(visible_rows),
        url=f"{reverse('console:usage')}?{usage_filters.with_filter(group_by=group_by.value)}",
    )


def _to_top_line(
    usage_filters: UsageFilters, usage_overview: Overview, group_by: GroupBy, row: ReportRow
) -> TopLine:
    assert row.counts is not None
    # `quality` is None if the user may not see quality figures.
    acceptance_rate = acceptance(row.counts) if usage_overview.quality is not None else None
    return TopLine(
        name=display_name(group_by.value, row.label) or gettext("unknown"),
        url=f"?{usage_filters.with_filter(**{group_by.value: row.key})}",
        requests=row.counts.requests,
        requests_text=format_count(row.counts.requests),
        acceptance="" if acceptance_rate is None else format_share(acceptance_rate),
    )


def _count_requests(row: ReportRow) -> int:
    return row.counts.requests if row.counts else 0

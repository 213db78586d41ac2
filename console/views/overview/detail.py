"""The overview of the period and filters in its URL."""

from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember, member_required
from console.usage_filters.filter_form import UsageFilters, read_usage_filters
from console.usage_filters.last_minute import format_last_minute
from console.views.overview.presenters import accepted_chart, figures, requests_chart, speed_lines
from console.views.overview.spending import spend_line
from console.views.overview.top_lists import tops
from tenants.usage.reports.overview import Overview
from tenants.usage.reports.overview import overview as read_overview
from tenants.usage.requests.last_minute import read_last_minute

_PAGE: Final = "console/overview/overview.html"
_PART: Final = "console/overview/_overview.html"


@require_http_methods(["GET"])
@member_required
def overview(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    now = timezone.now()
    question = read_usage_filters(request, now=now)
    found = read_overview(actor=member.actor, asked=question.report_query, now=now)
    context = {
        "question": question,
        "found": found,
        "filters": question.list_filters(found.choices, found.teams),
        "live": format_last_minute(read_last_minute(actor=member.actor, now=now), member.actor),
        "gateway_url": settings.GATEWAY_URL,
        **_page_context(member, question, found),
    }
    status = 400 if question.is_invalid else 200
    return render_page(request, member, _PAGE, context, part=_PART, status=status)


def _page_context(member: CurrentMember, question: UsageFilters, found: Overview) -> dict[str, Any]:
    """Return the figures; nothing if there were no requests or all are suppressed."""
    if found.total.counts is None or not found.total.counts.requests:
        return {}
    return {
        "figures": figures(question, found),
        "speeds": speed_lines(question, found),
        "requests_chart": requests_chart(question, found),
        "accepted_chart": accepted_chart(question, found),
        "tops": tops(question, found),
        "spend": spend_line(found),
    }

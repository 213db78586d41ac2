"""Charts of requests, suggestions and acceptance over time."""

from django.utils.translation import gettext

from console.charts.chart import Chart, Series, bars, lines
from console.usage_filters.filter_form import UsageFilters
from console.usage_filters.number_format import COUNTS, SHARES
from console.usage_filters.time_buckets import times, values
from tenants.usage.reports.counters import UsageCounters
from tenants.usage.reports.metric_definitions import acceptance
from tenants.usage.reports.overview import Overview
from tenants.usage.reports.queries import GroupBy


def requests_chart(question: UsageFilters, found: Overview) -> Chart:
    """Return the chart with suggestions at the bottom and requests without suggestion above."""
    rows = found.by[GroupBy.DAY]
    series = [
        Series(gettext("Suggestions"), values(question, rows, lambda counts: counts.suggestions)),
        Series(gettext("Other requests"), values(question, rows, _others)),
    ]
    title = gettext("Requests per hour") if question.is_hourly else gettext("Requests per day")
    return bars(title, times(question), series, COUNTS)


def accepted_chart(question: UsageFilters, found: Overview) -> Chart | None:
    """Return the chart; None if the user may not see quality."""
    if found.quality is None or found.quality.counts is None:
        return None
    rows = found.by[GroupBy.DAY]
    series = [Series(gettext("Acceptance rate"), values(question, rows, acceptance))]
    title = gettext("Acceptance per hour") if question.is_hourly else gettext("Acceptance per day")
    return lines(title, times(question), series, SHARES, at_most=1)


def _others(counts: UsageCounters) -> float:
    return counts.requests - counts.suggestions

"""The time axis of a chart: each hour or day of the period, also those without usage."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format

from console.charts.chart import Time, Value
from console.usage_filters.filter_form import UsageFilters
from tenants.usage.reports.counters import UsageCounters
from tenants.usage.reports.queries import ReportRow, format_time_key


def list_moments(usage_filters: UsageFilters) -> list[datetime]:
    report_query = usage_filters.report_query
    step = timedelta(hours=1) if usage_filters.is_hourly else timedelta(days=1)
    num = (report_query.ends_at - report_query.starts_at) // step
    return [report_query.starts_at + step * index for index in range(num)]


def list_times(usage_filters: UsageFilters) -> list[Time]:
    """Return the labels: hours in the reader's time zone, days in UTC."""
    if usage_filters.is_hourly:
        local = map(timezone.localtime, list_moments(usage_filters))
        return [Time(date_format(at, "TIME_FORMAT")) for at in local]
    return [Time(date_format(day, "MONTH_DAY_FORMAT"), day) for day in _days_of(usage_filters)]


def values_over_time(
    usage_filters: UsageFilters, rows: Iterable[ReportRow], metric: Callable[[UsageCounters], Value]
) -> list[Value]:
    """Return the values over time. None: suppressed or no value.

    Hours and days without usage count as zero.
    """
    by_key = {row.key: row.counts for row in rows}
    zero_counts = UsageCounters()
    counts_by_time = (
        by_key.get(format_time_key(usage_filters.report_query, at), zero_counts)
        for at in list_moments(usage_filters)
    )
    return [None if counts is None else metric(counts) for counts in counts_by_time]


def num_hidden(rows: Iterable[ReportRow]) -> int:
    return sum(row.suppression is not None for row in rows)


def _days_of(usage_filters: UsageFilters) -> list[date]:
    return [at.astimezone(UTC).date() for at in list_moments(usage_filters)]

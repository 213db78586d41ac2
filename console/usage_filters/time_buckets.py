"""The time axis of a chart. It has each hour or day of the period, also those without usage."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format

from console.charts.chart import Time, Value
from console.usage_filters.filter_form import UsageFilters
from tenants.usage.reports.counters import UsageCounters
from tenants.usage.reports.queries import ReportRow, format_time_key


def _list_starts(usage_filters: UsageFilters) -> list[datetime]:
    """Return the starts of the hours or days."""
    report_query = usage_filters.report_query
    step = timedelta(hours=1) if usage_filters.is_hourly else timedelta(days=1)
    num_steps = (report_query.ends_at - report_query.starts_at) // step
    return [report_query.starts_at + step * index for index in range(num_steps)]


def list_times(usage_filters: UsageFilters) -> list[Time]:
    """Return the labels: hours in the reader's time zone, days in UTC."""
    if usage_filters.is_hourly:
        local = map(timezone.localtime, _list_starts(usage_filters))
        return [Time(date_format(at, "TIME_FORMAT")) for at in local]
    return [Time(date_format(day, "MONTH_DAY_FORMAT"), day) for day in _days_of(usage_filters)]


def values_over_time(
    usage_filters: UsageFilters, rows: Iterable[ReportRow], metric: Callable[[UsageCounters], Value]
) -> list[Value]:
    """Return the value of `metric` for each hour or day. None: suppressed, or `metric` has none.

    An hour or day without a row has counters of zero.
    """
    counts_by_key = {row.key: row.counts for row in rows}
    zero_counts = UsageCounters()
    counts_by_time = (
        counts_by_key.get(format_time_key(usage_filters.report_query, at), zero_counts)
        for at in _list_starts(usage_filters)
    )
    return [None if counts is None else metric(counts) for counts in counts_by_time]


def count_suppressed(rows: Iterable[ReportRow]) -> int:
    return sum(row.suppression is not None for row in rows)


def _days_of(usage_filters: UsageFilters) -> list[date]:
    return [at.astimezone(UTC).date() for at in _list_starts(usage_filters)]

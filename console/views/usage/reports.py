"""The usage and quality reports of a period, in groups: a table, charts and a CSV file."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.charts.chart import Chart, Series, build_bar_chart, build_line_chart
from console.layout.htmx import render_page
from console.layout.lists.csv_response import csv_response, format_csv_error
from console.layout.lists.pagination import wants_csv
from console.layout.tabs import Tab
from console.sign_in.current_member import CurrentMember, member_required
from console.usage_filters.display_names import display_name
from console.usage_filters.file_notes import notes_of_figures
from console.usage_filters.filter_form import UsageFilters, group_query, read_usage_filters
from console.usage_filters.number_format import COUNTS, SHARES, format_count
from console.usage_filters.time_buckets import list_times, values_over_time
from console.views.overview.presenters import SOURCES
from console.views.usage.presenters import (
    COLUMNS,
    MetricFunction,
    ReportColumn,
    ReportTableRow,
    format_cells,
    list_titled_columns,
)
from console.views.usage.tabs import tabs
from tenants.base.permissions import Permission
from tenants.usage.reports.counters import UsageCounters
from tenants.usage.reports.filter_options import read_filter_options
from tenants.usage.reports.metric_definitions import acceptance, completion_acceptance, persistence
from tenants.usage.reports.queries import (
    PERMISSIONS,
    SERVICE_KEYS,
    GroupBy,
    Report,
    ReportKind,
    ReportRow,
    read_report,
)
from tenants.usage.reports.suppression.small_groups import Suppression

_PAGE: Final = "console/usage/reports.html"
_PART: Final = "console/usage/_reports.html"  # of the page, for htmx
_GROUP_TITLES: Final[dict[GroupBy, str | Promise]] = {
    GroupBy.DAY: _("Over time"),
    GroupBy.TEAM: _("By team"),
    GroupBy.LANGUAGE: _("By language"),
    GroupBy.EDITOR: _("By editor"),
    GroupBy.MODEL: _("By model"),
    GroupBy.VARIANT: _("By variant"),
    GroupBy.USER: _("By user"),
}
_SUPPRESSION_TEXTS: Final[dict[Suppression, str | Promise]] = {
    Suppression.TOO_FEW_USERS: _("too few users"),
    Suppression.COMPLEMENTARY: _("would reveal a small group"),
}
_URL_NAMES: Final = {ReportKind.USAGE: "usage", ReportKind.QUALITY: "usage-quality"}


class _GroupForm(forms.Form):
    group_by = forms.ChoiceField(
        choices=[(grouping.value, "") for grouping in _GROUP_TITLES], required=False
    )


@require_http_methods(["GET"])
@member_required
def usage(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _show_report(request, member, ReportKind.USAGE)


@require_http_methods(["GET"])
@member_required
def quality(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _show_report(request, member, ReportKind.QUALITY)


def _show_report(request: HttpRequest, member: CurrentMember, kind: ReportKind) -> HttpResponse:
    # One of the permissions is enough.
    if not any(map(member.actor.has_permission, PERMISSIONS[kind])):
        raise PermissionDenied
    now = timezone.now()
    usage_filters = read_usage_filters(request, now=now)
    group_form = _GroupForm(request.GET)
    has_errors = not group_form.is_valid() or usage_filters.is_invalid
    is_file = wants_csv(request)
    if is_file and has_errors:
        return format_csv_error(usage_filters.form, group_form)
    group_by = GroupBy(group_form.cleaned_data.get("group_by") or GroupBy.DAY)
    usage_report = read_report(
        actor=member.actor, kind=kind, query=group_query(usage_filters, group_by)
    )
    if is_file:
        return _csv_response(usage_filters, kind, group_by, usage_report)
    choices, teams = read_filter_options(
        actor=member.actor, kind=kind, query=usage_filters.report_query
    )
    titled_columns = list_titled_columns(kind)
    context = {
        "usage_filters": usage_filters,
        "report": usage_report,
        "group_by": group_by.value,
        "filters": usage_filters.list_filters(choices, teams),
        "tabs": tabs(member.actor, usage_filters, _URL_NAMES[kind]),
        "groups": _group_tabs(
            usage_filters,
            kind,
            group_by,
            _list_groups(member, usage_report, has_teams=bool(teams)),
        ),
        "columns": COLUMNS[kind],
        "sources": {source.name: str(text) for source, text in SOURCES.items()},
        "lines": [
            _to_table_row(usage_filters, titled_columns, group_by, row)
            for row in _sort_rows(usage_report, group_by)
        ],
        "total": _to_table_row(
            usage_filters, titled_columns, group_by=None, row=usage_report.total
        ),
        "charts": _build_charts(usage_filters, kind, usage_report)
        if group_by is GroupBy.DAY
        else [],
        "is_quality": kind is ReportKind.QUALITY,
        "csv_url": f"?{usage_filters.with_filter(group_by=group_by.value, **{'as': 'csv'})}",
    }
    status = 400 if has_errors else 200
    return render_page(request, member, _PAGE, context, part=_PART, status=status)


def _list_groups(
    member: CurrentMember, usage_report: Report, *, has_teams: bool
) -> frozenset[GroupBy]:
    """Return the groupings to offer.

    A report is grouped by user only if the tenant shows figures of single users, and only for
    members who see the usage of all users.
    """
    sees_users = usage_report.min_users == 1 and member.actor.has_permission(Permission.READ_USAGE)
    hidden_groups = {
        *(() if has_teams else (GroupBy.TEAM,)),
        *(() if sees_users else (GroupBy.USER,)),
    }
    return frozenset(GroupBy) - hidden_groups


def _group_tabs(
    usage_filters: UsageFilters,
    kind: ReportKind,
    current_group: GroupBy,
    offered_groups: frozenset[GroupBy],
) -> list[Tab]:
    url = reverse(f"console:{_URL_NAMES[kind]}")
    return [
        Tab(
            str(title),
            f"{url}?{usage_filters.with_filter(group_by=group.value)}",
            is_current=group is current_group,
        )
        for group, title in _GROUP_TITLES.items()
        if group in offered_groups
    ]


def _sort_rows(usage_report: Report, group_by: GroupBy) -> list[ReportRow]:
    """Return days (or hours) newest first; other groups largest first and suppressed ones last."""
    if group_by is GroupBy.DAY:
        return sorted(usage_report.rows, key=lambda row: row.key, reverse=True)
    # 1 is greater than all negated numbers, so suppressed groups come last.
    return sorted(usage_report.rows, key=lambda row: -row.counts.requests if row.counts else 1)


def _to_table_row(
    usage_filters: UsageFilters,
    titled_columns: Sequence[tuple[str, ReportColumn]],
    group_by: GroupBy | None,
    row: ReportRow,
) -> ReportTableRow:
    """Return the row for the table. `group_by` None: the row is the total."""
    return ReportTableRow(
        label=_row_label(group_by, row),
        url=_requests_url(usage_filters, group_by, row),
        users="" if row.users is None else format_count(row.users),
        cells=format_cells(row, titled_columns),
        suppression_text=""
        if row.suppression is None
        else str(_SUPPRESSION_TEXTS[row.suppression]),
    )


def _row_label(group_by: GroupBy | None, row: ReportRow) -> str:
    """Return the label of a row. `group_by` None: the row is the total."""
    if group_by is None:
        return gettext("Total")
    if group_by is GroupBy.DAY:
        start = datetime.fromisoformat(row.key)
        if start.tzinfo is None:  # a day
            return date_format(start, "SHORT_DATE_FORMAT")
        return date_format(timezone.localtime(start), "SHORT_DATETIME_FORMAT")  # an hour
    if group_by is GroupBy.TEAM:
        return row.label or gettext("no team")
    if group_by is GroupBy.USER:
        return _user_label(row)
    return display_name(group_by.value, row.label) or gettext("unknown")


def _user_label(row: ReportRow) -> str:
    if row.key == SERVICE_KEYS:
        return gettext("Service keys")
    # The label of an erased user is their ID.
    return gettext("erased user") if row.label == row.key else row.label


def _requests_url(usage_filters: UsageFilters, group_by: GroupBy | None, row: ReportRow) -> str:
    """Return the URL of the list of the row's requests.

    Return "" for a suppressed row, and for users and "no team": the list cannot filter by these.
    A row with an empty key, such as that of the unknown language, has a link: `with_filter` turns
    the empty key into the filter value for "unknown".
    """
    is_listable = group_by is not GroupBy.USER and (group_by is not GroupBy.TEAM or row.key)
    if row.counts is None or not is_listable:
        return ""
    parameters = {} if group_by is None else {group_by.value: row.key}
    if group_by is GroupBy.DAY:
        parameters = {"range": "custom", "start": row.key, "end": row.key}
        if usage_filters.is_hourly:  # the row is one hour, not a day
            parameters = {"hour": row.key}
    return f"{reverse('console:usage-requests')}?{usage_filters.with_filter(**parameters)}"


def _build_charts(
    usage_filters: UsageFilters, kind: ReportKind, usage_report: Report
) -> list[Chart]:
    chart_times = list_times(usage_filters)

    def series(name: str, metric: MetricFunction) -> Series:
        return Series(name, values_over_time(usage_filters, usage_report.rows, metric))

    if kind is ReportKind.USAGE:
        tokens = series(gettext("Generated tokens"), lambda counts: counts.generated_tokens)
        request_series = [
            series(gettext("Suggestions"), lambda counts: counts.suggestions),
            series(gettext("Other requests"), _count_requests_without_suggestion),
        ]
        return [
            build_bar_chart(gettext("Requests"), chart_times, request_series, COUNTS),
            build_bar_chart(gettext("Generated tokens"), chart_times, [tokens], COUNTS),
        ]
    acceptance_series = [
        series(gettext("Acceptance rate"), acceptance),
        series(gettext("CAR"), completion_acceptance),  # completion acceptance rate
    ]
    persistence_series = [
        series(gettext("Persisted after 30 s"), lambda counts: persistence(counts, span_s=30)),
        series(gettext("Persisted after 30 min"), lambda counts: persistence(counts, span_s=1_800)),
    ]
    return [
        build_line_chart(
            gettext("Acceptance rate"), chart_times, acceptance_series, SHARES, at_most=1
        ),
        build_line_chart(
            gettext("Persistence of accepted suggestions"),
            chart_times,
            persistence_series,
            SHARES,
            at_most=1,
        ),
    ]


def _count_requests_without_suggestion(counts: UsageCounters) -> float:
    return counts.requests - counts.suggestions


def _csv_response(
    usage_filters: UsageFilters, kind: ReportKind, group_by: GroupBy, usage_report: Report
) -> HttpResponse:
    columns = COLUMNS[kind]
    header = [group_by.value, "label", "users", *(column.name for column in columns), "suppressed"]
    rows = [
        [row.key, row.label, row.users, *_csv_numbers(row, kind), row.suppression or ""]
        for row in [*usage_report.rows, usage_report.total]
    ]
    rows[-1][0] = "total"  # the key of the total is empty
    notes = notes_of_figures(usage_filters, usage_report)
    return csv_response(f"{kind.value}-by-{group_by.value}", header, rows, notes=notes)


def _csv_numbers(row: ReportRow, kind: ReportKind) -> list[float | None]:
    return [None if row.counts is None else column.compute(row.counts) for column in COLUMNS[kind]]

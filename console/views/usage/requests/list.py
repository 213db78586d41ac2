"""The list of requests with their properties, times and counts, but without users and text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from caret.contracts.latency_targets import FIRST_TOKEN_TARGETS_MS
from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from console.layout.lists.csv_response import CsvRows
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.lists.sorting import with_query
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.labels import FINISH_LABELS, MODE_LABELS
from console.usage_filters.filter_form import (
    UsageFilter,
    UsageFilterForm,
    UsageFilterOption,
    UsageFilters,
    read_usage_filters,
)
from console.usage_filters.number_format import format_count, format_milliseconds, format_share
from console.views.usage.tabs import tabs
from tenants.base.pagination import MAX_PAGE, Page
from tenants.compliance.exports.rows import Value
from tenants.usage.reports.filter_options import read_filter_options
from tenants.usage.reports.queries import ReportKind
from tenants.usage.requests.list_queries import (
    EndingFilter,
    RequestFilter,
    RequestRow,
    RequestSort,
    list_requests,
)

_ENDED: Final[dict[EndingFilter, str | Promise]] = {
    EndingFilter.COMPLETED: _("Completed"),
    EndingFilter.CANCELLED: _("Cancelled or superseded"),
    EndingFilter.WITHHELD: _("Filtered"),
    EndingFilter.REJECTED: _("Not served"),
    EndingFilter.ERROR: _("Error"),
}
_ORDERS: Final[dict[RequestSort, str | Promise]] = {
    RequestSort.NEWEST: _("Newest"),
    RequestSort.SLOW: _("Slowest first token"),
    RequestSort.REPLICA_LOAD: _("Most requests in flight at replica"),
}
# Kinds of <c-badge>, by finish reason.
FINISH_BADGE_KINDS: Final[Mapping[FinishReason, str]] = {
    FinishReason.STOP: "good",
    FinishReason.LENGTH: "good",
    FinishReason.CANCELLED: "off",
    FinishReason.SUPERSEDED: "off",
    FinishReason.SHED: "warn",
    FinishReason.FILTERED: "warn",
    FinishReason.BUDGET_EXCEEDED: "warn",
    FinishReason.ERROR: "bad",
}


class RequestsFilterForm(UsageFilterForm):
    mode = forms.ChoiceField(
        choices=[("", ""), *((mode.value, "") for mode in Mode)], required=False
    )
    ended = forms.ChoiceField(
        choices=[("", ""), *((ending.value, "") for ending in EndingFilter)], required=False
    )
    order = forms.ChoiceField(
        choices=[("", ""), *((order.value, "") for order in RequestSort)], required=False
    )
    # The start of an hour; it replaces the period of the other fields.
    hour = forms.DateTimeField(required=False)

    def clean_hour(self) -> datetime | None:
        hour: datetime | None = self.cleaned_data["hour"]
        if hour is not None and not 1900 <= hour.year <= 9000:  # so that no date overflows
            raise forms.ValidationError(gettext("There is no data for this period."))
        return hour


@dataclass(frozen=True, slots=True)
class RequestListRow:
    row: RequestRow
    mode: str
    badge_kind: str  # of the finish reason's <c-badge>
    finish_reason: str
    first_token: str  # "": no text was sent
    is_slow: bool  # the first token was later than its target
    cached: str  # share of the prompt tokens; "–": unknown
    prompt_tokens: str
    generated_tokens: str
    in_flight_at_replica: str  # "–": the request reached no replica


@dataclass(frozen=True, slots=True)
class RequestListPage(Page[RequestListRow]):
    request_filter: RequestFilter
    is_small_group: bool  # the filters select requests of a few users


def _find_requests(query: ListQuery) -> RequestListPage:
    request_filter = _build_request_filter(
        read_usage_filters(query.request, now=query.now), query.filters
    )
    request_page = list_requests(
        actor=query.actor,
        request_filter=request_filter,
        limit=query.limit,
        cursor=query.cursor,
        now=query.now,
    )
    rows = [_present_request(row) for row in request_page.page.rows]
    return RequestListPage(
        rows, request_page.page.next_cursor, request_filter, request_page.is_small_group
    )


def _build_context(query: ListQuery, page: RequestListPage) -> dict[str, Any]:
    usage_filters = read_usage_filters(query.request, now=query.now)
    choices, teams = read_filter_options(
        actor=query.actor, kind=ReportKind.USAGE, query=usage_filters.report_query
    )
    request_filter, hour = page.request_filter, query.filters.get("hour")
    is_newest_first = request_filter.order is RequestSort.NEWEST
    return {
        "usage_filters": usage_filters,
        "request_filter": request_filter,
        # True: the period is too long to be listed completely, so the list begins at `since`.
        "begins_later": request_filter.since > request_filter.starts_at,
        "is_small_group": page.is_small_group,
        "is_single_hour": hour is not None,
        # As in the URL, so that the filter form keeps the hour.
        "hour": query.request.GET.get("hour", "") if hour else "",
        # A list in another order has only one page.
        "is_truncated": not is_newest_first and len(page.rows) == query.limit,
        "filters": [
            *_list_request_filters(query.filters),
            *usage_filters.list_filters(choices, teams),
        ],
        "tabs": tabs(query.actor, usage_filters, "usage-requests"),
        "csv_url": with_query(query.request, **{"as": "csv"}),
    }


def _build_request_filter(usage_filters: UsageFilters, cleaned: Mapping[str, Any]) -> RequestFilter:
    report_query, hour = usage_filters.report_query, cleaned.get("hour")
    return RequestFilter(
        starts_at=hour or report_query.starts_at,
        ends_at=hour + timedelta(hours=1) if hour else report_query.ends_at,
        report_filter=report_query.filter,
        mode=Mode(cleaned["mode"]) if cleaned.get("mode") else None,
        ended=EndingFilter(cleaned["ended"]) if cleaned.get("ended") else None,
        order=RequestSort(cleaned.get("order") or RequestSort.NEWEST),
    )


def _list_request_filters(cleaned: Mapping[str, Any]) -> list[UsageFilter]:
    """Return the filters and the order that only this list has, not the reports."""
    orders = {order: title for order, title in _ORDERS.items() if order is not RequestSort.NEWEST}
    # Name, title, titles of the values, and title of the default.
    options: tuple[tuple[str, str, Mapping[Any, Any], str], ...] = (
        ("mode", gettext("Mode"), MODE_LABELS, ""),
        ("ended", gettext("Finish reason"), _ENDED, ""),
        ("order", gettext("Sort by"), orders, str(_ORDERS[RequestSort.NEWEST])),
    )
    return [
        UsageFilter(
            name,
            title,
            [
                UsageFilterOption(
                    option.value, str(text), is_selected=cleaned.get(name) == option.value
                )
                for option, text in titles.items()
            ],
            default_title,
        )
        for name, title, titles, default_title in options
    ]


def _present_request(row: RequestRow) -> RequestListRow:
    finish_reason = FINISH_LABELS[row.finish_reason]
    return RequestListRow(
        row=row,
        mode=str(MODE_LABELS[row.mode]),
        badge_kind=FINISH_BADGE_KINDS[row.finish_reason],
        finish_reason=f"{finish_reason}: {row.error_code}"
        if row.error_code
        else str(finish_reason),
        first_token="" if row.first_token_ms is None else format_milliseconds(row.first_token_ms),
        is_slow=row.first_token_ms is not None
        and row.first_token_ms > FIRST_TOKEN_TARGETS_MS[row.mode],
        cached=_format_cached_share(row),
        prompt_tokens=format_count(row.prompt_tokens),
        generated_tokens=format_count(row.generated_tokens),
        in_flight_at_replica="–"
        if row.num_in_flight_at_replica is None
        else format_count(row.num_in_flight_at_replica),
    )


def _format_cached_share(row: RequestRow) -> str:
    if row.cached_tokens is None or not row.prompt_tokens:
        return "–"
    return format_share(row.cached_tokens / row.prompt_tokens)


def _build_column_reader(name: str) -> Callable[[RequestListRow], Value]:
    return lambda list_row: getattr(list_row.row, name)


def _list_notes(_query: ListQuery, rows: CsvRows[RequestListRow]) -> list[str]:
    """Return notes about requests that the file lacks.

    A list in another order than newest first has only one page.
    """
    assert isinstance(rows.last_page, RequestListPage)
    request_filter = rows.last_page.request_filter
    notes: list[str] = []
    if request_filter.order is not RequestSort.NEWEST and len(rows.rows) == MAX_PAGE:
        notes.append(gettext("Showing the first %(num)s.") % {"num": MAX_PAGE})
    if request_filter.since > request_filter.starts_at:
        text = gettext(
            "This period is too long to be listed completely. The list begins at %(since)s."
        )
        notes.append(
            text
            % {
                "since": date_format(
                    timezone.localtime(request_filter.since), "SHORT_DATETIME_FORMAT"
                )
            }
        )
    return notes


_REQUESTS: Final = ListPage(
    template="console/usage/requests/list.html",
    fragment="console/usage/requests/_list.html",
    query=_find_requests,
    page_rows=50,
    form=RequestsFilterForm,
    context=_build_context,
    rejects_invalid_filters=True,
    csv=CsvFile(
        "requests",
        {name: _build_column_reader(name) for name in RequestRow.__dataclass_fields__},
        notes=_list_notes,
    ),
)


@require_GET
@member_required
def requests(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _REQUESTS.render(request, member)

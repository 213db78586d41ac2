"""The list of requests: kinds, times and counts, never users or text."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from caret.contracts.latency_targets import FIRST_TOKEN_TARGETS_MS
from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from console.layout.htmx import render_page
from console.layout.lists.csv_response import (
    CsvRows,
    collect_rows,
    csv_error,
    csv_response,
    notes_of,
)
from console.sign_in.current_member import CurrentMember, member_required
from console.usage_filters.filter_form import (
    UsageFilter,
    UsageFilterOption,
    UsageFilters,
    read_usage_filters,
)
from console.usage_filters.number_format import count, milliseconds, share
from console.views.overview.presenters import MODES
from console.views.usage.tabs import tabs
from tenants.base.errors import InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.usage.reports.filter_options import read_filter_options
from tenants.usage.reports.queries import ReportKind
from tenants.usage.requests.list_queries import (
    EndingFilter,
    RequestFilter,
    RequestPage,
    RequestRow,
    RequestSort,
    page_of_requests,
)

_PAGE: Final = "console/usage/requests/list.html"
_PART: Final = "console/usage/requests/_list.html"
_SHOWN: Final = 50
_NOTHING: Final = RequestPage(Page([], None), is_of_few=False)
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
FINISHES: Final[dict[FinishReason, tuple[str, str | Promise]]] = {
    FinishReason.STOP: ("good", _("completed")),
    FinishReason.LENGTH: ("good", _("completed (maximum length)")),
    FinishReason.CANCELLED: ("off", _("cancelled")),
    FinishReason.SUPERSEDED: ("off", _("superseded")),
    FinishReason.SHED: ("warn", _("shed")),
    FinishReason.FILTERED: ("warn", _("filtered")),
    FinishReason.BUDGET_EXCEEDED: ("warn", _("budget exceeded")),
    FinishReason.ERROR: ("bad", _("error")),
}


class ListForm(forms.Form):
    mode = forms.ChoiceField(choices=[("", ""), *((m.value, "") for m in Mode)], required=False)
    ended = forms.ChoiceField(
        choices=[("", ""), *((e.value, "") for e in EndingFilter)], required=False
    )
    order = forms.ChoiceField(
        choices=[("", ""), *((o.value, "") for o in RequestSort)], required=False
    )
    # The start of an hour, which replaces the filter's period.
    hour = forms.DateTimeField(required=False)

    def clean_hour(self) -> datetime | None:
        hour: datetime | None = self.cleaned_data["hour"]
        if hour is not None and not 1900 <= hour.year <= 9000:  # far from the first and last date
            raise forms.ValidationError(gettext("There is no data for this period."))
        return hour


@dataclass(frozen=True, slots=True)
class RequestListRow:
    row: RequestRow
    url: str
    mode: str
    state: str  # kind of <c-badge>
    finish: str
    first_token: str  # "": no text was sent
    is_slow: bool
    cached: str
    prompt_tokens: str
    generated_tokens: str
    at_replica: str


@require_http_methods(["GET"])
@member_required
def requests(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    now = timezone.now()
    question = read_usage_filters(request, now=now)
    form = ListForm(request.GET)
    is_good = form.is_valid() and not question.is_invalid
    said = form.cleaned_data if form.is_valid() else {}
    wanted = _to_request_filter(question, said)
    if request.GET.get("format") == "csv":
        return _csv_response(member, wanted, now) if is_good else csv_error(question.form, form)
    try:
        listed = page_of_requests(
            actor=member.actor,
            wanted=wanted,
            limit=_SHOWN,
            cursor=request.GET.get("cursor"),
            now=now,
        )
    except InvalidValue:  # an invalid cursor, which no user types
        listed, is_good = _NOTHING, False
    page = listed.page
    choices, teams = read_filter_options(
        actor=member.actor, kind=ReportKind.USAGE, asked=question.report_query
    )
    context = {
        "question": question,
        "wanted": wanted,
        "is_later": wanted.since > wanted.starts_at,
        "is_of_few": listed.is_of_few,
        "is_an_hour": said.get("hour") is not None,
        # As it was requested, so that other filters keep the hour.
        "hour": request.GET.get("hour", "") if said.get("hour") else "",
        "is_cut": wanted.order is not RequestSort.NEWEST and len(page.rows) == _SHOWN,
        "filters": [*_own_filters(said), *question.list_filters(choices, teams)],
        "tabs": tabs(member.actor, question, "usage-requests"),
        "lines": [_to_list_row(row) for row in page.rows],
        "more_url": _more_url(request, page.next_cursor),
        "csv_url": _url_with(request, format="csv", cursor=""),
    }
    return render_page(request, member, _PAGE, context, part=_PART, status=200 if is_good else 400)


def _to_request_filter(question: UsageFilters, said: dict[str, Any]) -> RequestFilter:
    asked, hour = question.report_query, said.get("hour")
    return RequestFilter(
        starts_at=hour or asked.starts_at,
        ends_at=hour + timedelta(hours=1) if hour else asked.ends_at,
        filter=asked.filter,
        mode=Mode(said["mode"]) if said.get("mode") else None,
        ended=EndingFilter(said["ended"]) if said.get("ended") else None,
        order=RequestSort(said.get("order") or RequestSort.NEWEST),
    )


def _own_filters(said: dict[str, Any]) -> list[UsageFilter]:
    known: tuple[tuple[str, str, dict[Any, Any]], ...] = (
        ("mode", gettext("Kind"), MODES),
        ("ended", gettext("Outcome"), _ENDED),
        ("order", gettext("Sort by"), _ORDERS),
    )
    return [
        UsageFilter(
            name,
            title,
            [
                UsageFilterOption(key.value, str(text), said.get(name) == key.value)
                for key, text in of.items()
            ],
        )
        for name, title, of in known
    ]


def _to_list_row(row: RequestRow) -> RequestListRow:
    state, finish = FINISHES[row.finish]
    return RequestListRow(
        row=row,
        url=reverse("console:usage-request", args=[row.request_id]),
        mode=str(MODES[row.mode]),
        state=state,
        finish=f"{finish}: {row.error_code}" if row.error_code else str(finish),
        first_token="" if row.first_token_ms is None else milliseconds(row.first_token_ms),
        is_slow=row.first_token_ms is not None
        and row.first_token_ms > FIRST_TOKEN_TARGETS_MS[row.mode],
        cached=_format_cached(row),
        prompt_tokens=count(row.prompt_tokens),
        generated_tokens=count(row.generated_tokens),
        at_replica="–"
        if row.num_in_flight_at_replica is None
        else count(row.num_in_flight_at_replica),
    )


def _format_cached(row: RequestRow) -> str:
    if row.cached_tokens is None or not row.prompt_tokens:
        return "–"
    return share(row.cached_tokens / row.prompt_tokens)


def _more_url(request: HttpRequest, cursor: str | None) -> str:
    return _url_with(request, cursor=cursor) if cursor else ""


def _url_with(request: HttpRequest, **values: str) -> str:
    said = request.GET.copy()
    for name, value in values.items():
        said[name] = value
        if not value:
            del said[name]
    return f"?{said.urlencode()}"


_FIELDS: Final = tuple(RequestRow.__dataclass_fields__)


def _csv_response(member: CurrentMember, wanted: RequestFilter, now: datetime) -> HttpResponse:
    """Return the list as CSV: all pages if sorted by time, otherwise only the first."""

    def page_after(cursor: str | None) -> Page[RequestRow]:
        listed = page_of_requests(
            actor=member.actor, wanted=wanted, limit=MAX_PAGE, cursor=cursor, now=now
        )
        return listed.page

    gathered = collect_rows(page_after)
    rows = [[getattr(row, name) for name in _FIELDS] for row in gathered.rows]
    return csv_response("requests", _FIELDS, rows, notes=_csv_notes(wanted, gathered))


def _csv_notes(wanted: RequestFilter, gathered: CsvRows[RequestRow]) -> list[str]:
    notes = notes_of(gathered)
    if wanted.order is not RequestSort.NEWEST and len(gathered.rows) == MAX_PAGE:
        notes.append(gettext("Showing the first %(num)s.") % {"num": MAX_PAGE})
    if wanted.since > wanted.starts_at:
        said = gettext(
            "Since %(since)s. For longer periods, only the most recent requests are listed."
        )
        notes.append(
            said % {"since": date_format(timezone.localtime(wanted.since), "SHORT_DATETIME_FORMAT")}
        )
    return notes

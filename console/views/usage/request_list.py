"""The requests behind the numbers: kinds, times and counts, never who asked and never text."""

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

from caret.contracts.latency_targets import FIRST_TOKEN_MS
from caret.contracts.policy import Mode
from caret.contracts.usage import Finish
from console.current_member import Member, for_members
from console.layout.csv_response import Gathered, csv_answer, csv_refused, first_rows, notes_of
from console.layout.htmx import show
from console.usage_filters.filter_form import Choice, Filter, Question, read_question
from console.usage_filters.number_format import count, milliseconds, share
from console.views.overview.presenters import MODES
from console.views.usage.tabs import tabs
from tenants.base.errors import Invalid
from tenants.base.pagination import MAX_PAGE, Page
from tenants.usage.reports.filter_options import read_choices
from tenants.usage.reports.queries import Kind
from tenants.usage.requests.list_queries import (
    Ended,
    Listed,
    Order,
    RequestLine,
    Wanted,
    page_of_requests,
)

_PAGE: Final = "console/usage/requests.html"
_PART: Final = "console/usage/_requests.html"
_SHOWN: Final = 50
_NOTHING: Final = Listed(Page([], None), is_of_few=False)
_ENDED: Final[dict[Ended, str | Promise]] = {
    Ended.COMPLETED: _("Completed"),
    Ended.TAKEN_BACK: _("Taken back or superseded"),
    Ended.WITHHELD: _("Withheld by a filter"),
    Ended.NOT_SERVED: _("Not served"),
    Ended.ERROR: _("Error"),
}
_ORDERS: Final[dict[Order, str | Promise]] = {
    Order.NEWEST: _("Newest"),
    Order.SLOW: _("Slowest first token"),
    Order.BUSY: _("Busiest replica"),
}
FINISHES: Final[dict[Finish, tuple[str, str | Promise]]] = {
    Finish.STOP: ("good", _("completed")),
    Finish.LENGTH: ("good", _("completed, at its length")),
    Finish.CANCELLED: ("off", _("taken back")),
    Finish.SUPERSEDED: ("off", _("superseded")),
    Finish.SHED: ("warn", _("shed")),
    Finish.FILTERED: ("warn", _("withheld")),
    Finish.BUDGET: ("warn", _("budget spent")),
    Finish.ERROR: ("bad", _("error")),
}


class ListForm(forms.Form):
    mode = forms.ChoiceField(choices=[("", ""), *((m.value, "") for m in Mode)], required=False)
    ended = forms.ChoiceField(choices=[("", ""), *((e.value, "") for e in Ended)], required=False)
    order = forms.ChoiceField(choices=[("", ""), *((o.value, "") for o in Order)], required=False)
    # That begins then, in place of the time that is asked about otherwise.
    hour = forms.DateTimeField(required=False)

    def clean_hour(self) -> datetime | None:
        hour: datetime | None = self.cleaned_data["hour"]
        if hour is not None and not 1900 <= hour.year <= 9000:  # far from where dates end
            raise forms.ValidationError(gettext("Nothing was counted then."))
        return hour


@dataclass(frozen=True, slots=True)
class Line:
    row: RequestLine
    url: str
    mode: str
    state: str  # of c-state
    finish: str
    first_token: str  # "": no text was sent
    is_slow: bool
    cached: str
    prompt_tokens: str
    generated_tokens: str
    at_replica: str


@require_http_methods(["GET"])
@for_members
def requests(request: HttpRequest, member: Member) -> HttpResponse:
    now = timezone.now()
    question = read_question(request, now=now)
    form = ListForm(request.GET)
    is_good = form.is_valid() and not question.is_wrong
    said = form.cleaned_data if form.is_valid() else {}
    wanted = _wanted(question, said)
    if request.GET.get("format") == "csv":
        return _file(member, wanted, now) if is_good else csv_refused(question.form, form)
    try:
        listed = page_of_requests(
            actor=member.actor,
            wanted=wanted,
            limit=_SHOWN,
            cursor=request.GET.get("cursor"),
            now=now,
        )
    except Invalid:  # of the cursor: nobody types one
        listed, is_good = _NOTHING, False
    page = listed.page
    choices, teams = read_choices(actor=member.actor, kind=Kind.USAGE, asked=question.asked)
    context = {
        "question": question,
        "wanted": wanted,
        "is_later": wanted.since > wanted.begins_at,
        "is_of_few": listed.is_of_few,
        "is_an_hour": said.get("hour") is not None,
        # As it was asked for: another filter is of the same hour.
        "hour": request.GET.get("hour", "") if said.get("hour") else "",
        "is_cut": wanted.order is not Order.NEWEST and len(page.rows) == _SHOWN,
        "filters": [*_own_filters(said), *question.filters(choices, teams)],
        "tabs": tabs(member.actor, question, "usage-requests"),
        "lines": [_line(row) for row in page.rows],
        "more_url": _more_url(request, page.next_cursor),
        "csv_url": _url_with(request, format="csv", cursor=""),
    }
    return show(request, member, _PAGE, context, part=_PART, status=200 if is_good else 400)


def _wanted(question: Question, said: dict[str, Any]) -> Wanted:
    asked, hour = question.asked, said.get("hour")
    return Wanted(
        begins_at=hour or asked.begins_at,
        ends_at=hour + timedelta(hours=1) if hour else asked.ends_at,
        only=asked.only,
        mode=Mode(said["mode"]) if said.get("mode") else None,
        ended=Ended(said["ended"]) if said.get("ended") else None,
        order=Order(said.get("order") or Order.NEWEST),
    )


def _own_filters(said: dict[str, Any]) -> list[Filter]:
    known: tuple[tuple[str, str, dict[Any, Any]], ...] = (
        ("mode", gettext("Kind"), MODES),
        ("ended", gettext("Ended"), _ENDED),
        ("order", gettext("Order"), _ORDERS),
    )
    return [
        Filter(
            name,
            title,
            [Choice(key.value, str(text), said.get(name) == key.value) for key, text in of.items()],
        )
        for name, title, of in known
    ]


def _line(row: RequestLine) -> Line:
    state, finish = FINISHES[row.finish]
    return Line(
        row=row,
        url=reverse("console:usage-request", args=[row.request_id]),
        mode=str(MODES[row.mode]),
        state=state,
        finish=f"{finish}: {row.error_code}" if row.error_code else str(finish),
        first_token="" if row.first_token_ms is None else milliseconds(row.first_token_ms),
        is_slow=row.first_token_ms is not None and row.first_token_ms > FIRST_TOKEN_MS[row.mode],
        cached=_cached(row),
        prompt_tokens=count(row.prompt_tokens),
        generated_tokens=count(row.generated_tokens),
        at_replica="–" if row.num_at_replica is None else count(row.num_at_replica),
    )


def _cached(row: RequestLine) -> str:
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


_FIELDS: Final = tuple(RequestLine.__dataclass_fields__)


def _file(member: Member, wanted: Wanted, now: datetime) -> HttpResponse:
    """All that the page shows part by part; of another order, as much as there is of it."""

    def page_after(cursor: str | None) -> Page[RequestLine]:
        listed = page_of_requests(
            actor=member.actor, wanted=wanted, limit=MAX_PAGE, cursor=cursor, now=now
        )
        return listed.page

    gathered = first_rows(page_after)
    rows = [[getattr(row, name) for name in _FIELDS] for row in gathered.rows]
    return csv_answer("requests", _FIELDS, rows, notes=_notes(wanted, gathered))


def _notes(wanted: Wanted, gathered: Gathered[RequestLine]) -> list[str]:
    notes = notes_of(gathered)
    if wanted.order is not Order.NEWEST and len(gathered.rows) == MAX_PAGE:
        notes.append(gettext("The first %(num)s in this order.") % {"num": MAX_PAGE})
    if wanted.since > wanted.begins_at:
        said = gettext(
            "Since %(since)s: single requests of longer times are listed for their last days only."
        )
        notes.append(
            said % {"since": date_format(timezone.localtime(wanted.since), "SHORT_DATETIME_FORMAT")}
        )
    return notes

"""Recent refusals by policies: counts and reasons, never content."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.lists.csv_response import csv_response
from console.layout.lists.pagination import wants_csv
from console.layout.lists.sorting import TableSorting, headings, read_sorting, with_query
from console.sign_in.current_member import CurrentMember, member_required
from console.views.content_exclusion.detail import tabs
from console.views.policies.presenters import MODES
from tenants.base.permissions import Permission
from tenants.identity.members.queries import emails_of
from tenants.policy.denials import DenialReport, count_denials

_SPANS: Final = (7, 30, 90)  # in days
MAX_SHOWN: Final = 100  # number of rows
REASONS: Final = {
    "feature_disabled": _("Mode not allowed"),
    "model_not_allowed": _("Model not allowed"),
    "path_excluded": _("Path excluded"),
    "path_required": _("No file path"),
    "region_not_allowed": _("Region not allowed"),
    "insufficient_scope": _("Insufficient scope"),
    "public_code": _("Filtered: public code"),
    "secret": _("Filtered: possible secret"),
}


class DenialSort(StrEnum):
    REASON = "reason"
    MODE = "mode"
    WHO = "who"
    NUM = "num"
    LAST = "last"


_MOST: Final = TableSorting(DenialSort.NUM, is_descending=True)
_TITLES: Final = {
    DenialSort.REASON: _("Reason"),
    DenialSort.MODE: _("Requested"),
    DenialSort.WHO: _("User"),
    DenialSort.NUM: _("Count"),
    DenialSort.LAST: _("Last seen"),
}


def _period_choices() -> list[tuple[str, str]]:
    return [(str(days), ngettext("%d day", "%d days", days) % days) for days in _SPANS]


class SpanForm(forms.Form):
    days = forms.ChoiceField(
        label=_("Period"),
        choices=_period_choices,  # a callable, so that each request gets its own language
        required=False,
    )


@dataclass(frozen=True, slots=True)
class DenialRow:
    reason: str
    mode: str
    who: str
    num: int
    last_at: datetime


@require_GET
@member_required
def denials(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = SpanForm(request.GET)
    is_valid = form.is_valid()
    days = int((form.cleaned_data["days"] if is_valid else "") or _SPANS[0])
    found = count_denials(actor=member.actor, num_days=days, now=timezone.now())
    sorting = read_sorting(request, _MOST)
    are_all = member.actor.has_permission(Permission.READ_USAGE)
    rows = _sort_rows(_to_rows(member, found), sorting)
    if wants_csv(request):
        return _csv_response(rows, are_all=are_all)
    context = {
        "tabs": tabs(request, member),
        "form": form,
        "rows": rows[:MAX_SHOWN],
        "headings": headings(request, sorting, _TITLES),
        "file_url": with_query(request, **{"as": "csv"}),
        "num": sum(each.num for each in found),
        "num_hidden": max(0, len(found) - MAX_SHOWN),
        "are_all": are_all,
    }
    return render_page(
        request,
        member,
        "console/content_exclusion/denials.html",
        context,
        part="console/content_exclusion/_denials.html",
        status=200 if is_valid else 400,
    )


def _to_rows(member: CurrentMember, found: list[DenialReport]) -> list[DenialRow]:
    user_ids = {each.user_id for each in found if each.user_id is not None}
    emails = {}
    if member.actor.has_permission(Permission.READ_MEMBERS):
        emails = emails_of(actor=member.actor, user_ids=user_ids)
    own = member.actor.user_id
    return [
        DenialRow(
            reason=str(REASONS[each.reason]),
            mode=str(MODES.get(each.mode, each.mode)),
            who=gettext("Service keys")
            if each.user_id is None
            else gettext("You")
            if each.user_id == own
            else emails.get(each.user_id, each.user_id),
            num=each.num,
            last_at=each.last_at,
        )
        for each in found
    ]


def _sort_rows(rows: list[DenialRow], sorting: TableSorting[DenialSort]) -> list[DenialRow]:
    keys: dict[DenialSort, Callable[[DenialRow], Any]] = {
        DenialSort.REASON: lambda row: row.reason,
        DenialSort.MODE: lambda row: row.mode,
        DenialSort.WHO: lambda row: row.who,
        DenialSort.NUM: lambda row: row.num,
        DenialSort.LAST: lambda row: row.last_at,
    }
    return sorted(rows, key=keys[sorting.order], reverse=sorting.is_descending)


def _csv_response(rows: list[DenialRow], *, are_all: bool) -> HttpResponse:
    """Return all rows as CSV, also those that do not fit on the page."""
    header = ("reason", "mode", "user", "count", "last_seen_at")
    cells = [(row.reason, row.mode, row.who, row.num, row.last_at) for row in rows]
    return csv_response(
        "refused", header, cells, notes=[] if are_all else [gettext("only your own")]
    )

"""The page of denials: refused requests, and requests whose completions were withheld.

A policy or the scopes of an API key refuse a request. A filter withholds a completion.

The page shows counts and reasons, but never content.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from caret.foundation.ids import UserId
from console.layout.lists.csv_response import MAX_ROWS
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.lists.sorting import SortOrders, TableSorting
from console.sign_in.current_member import CurrentMember, member_required
from console.views.content_exclusion.detail import tabs
from console.views.policies.presenters import MODES
from tenants.base.pagination import Page, slice_page
from tenants.base.permissions import Permission
from tenants.identity.members.queries import find_emails
from tenants.policy.denials import DenialCount, count_denials

_PERIODS_DAYS: Final = (7, 30, 90)
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
    USER = "user"
    NUM_DENIALS = "num_denials"
    LAST = "last"


_ORDERS: Final = SortOrders(
    default=TableSorting(DenialSort.NUM_DENIALS, is_descending=True),
    titles={
        DenialSort.REASON: _("Reason"),
        DenialSort.MODE: _("Mode"),
        DenialSort.USER: _("User"),
        DenialSort.NUM_DENIALS: _("Count"),
        DenialSort.LAST: _("Last seen"),
    },
)


def _list_periods() -> list[tuple[str, str]]:
    return [(str(days), ngettext("%d day", "%d days", days) % days) for days in _PERIODS_DAYS]


class PeriodForm(forms.Form):
    days = forms.ChoiceField(
        label=_("Period"),
        choices=_list_periods,  # a function: each request gets them in its own language
        required=False,
    )


@dataclass(frozen=True, slots=True)
class DenialRow:
    """The denials of one user for one reason and mode."""

    reason: str
    mode: str
    user: str  # an e-mail address, "You" or "Service keys"; a user's ID if the address is unknown
    num_denials: int
    last_at: datetime  # time of the last one


@dataclass(frozen=True, slots=True)
class DenialPage(Page[DenialRow]):
    num_requests: int  # denied requests on all pages of the list


def _to_rows(member: CurrentMember, counts: list[DenialCount]) -> list[DenialRow]:
    user_ids = {count.user_id for count in counts if count.user_id is not None}
    emails = {}  # by user ID
    if member.actor.has_permission(Permission.READ_MEMBERS):
        emails = find_emails(actor=member.actor, user_ids=user_ids)
    return [
        DenialRow(
            reason=str(REASONS[count.reason]),
            mode=str(MODES.get(count.mode, count.mode)),
            user=_name_user(count.user_id, emails, own_id=member.actor.user_id),
            num_denials=count.num_denials,
            last_at=count.last_at,
        )
        for count in counts
    ]


def _name_user(
    user_id: UserId | None, emails: Mapping[UserId, str], *, own_id: UserId | None
) -> str:
    """Return `DenialRow.user`. `user_id` None: service keys."""
    if user_id is None:
        return gettext("Service keys")
    if user_id == own_id:
        return gettext("You")
    return emails.get(user_id, user_id)


def _sort_rows(rows: list[DenialRow], sorting: TableSorting[DenialSort]) -> list[DenialRow]:
    sort_keys: dict[DenialSort, Callable[[DenialRow], Any]] = {
        DenialSort.REASON: lambda row: row.reason,
        DenialSort.MODE: lambda row: row.mode,
        DenialSort.USER: lambda row: row.user,
        DenialSort.NUM_DENIALS: lambda row: row.num_denials,
        DenialSort.LAST: lambda row: row.last_at,
    }
    return sorted(rows, key=sort_keys[sorting.order], reverse=sorting.is_descending)


def _find_denials(query: ListQuery) -> DenialPage:
    days = int(query.filters.get("days") or _PERIODS_DAYS[0])
    counts = count_denials(actor=query.actor, num_days=days, now=query.now)
    rows = _sort_rows(_to_rows(query.member, counts), query.sorting)
    page = slice_page(rows, limit=query.limit, cursor=query.cursor)
    return DenialPage(
        page.rows, page.next_cursor, num_requests=sum(row.num_denials for row in rows)
    )


def _build_context(query: ListQuery, page: DenialPage) -> dict[str, Any]:
    return {
        "tabs": tabs(query.request, query.member),
        "num_requests": page.num_requests,
        "shows_all_users": _shows_all_users(query),
    }


def _shows_all_users(query: ListQuery) -> bool:
    return query.actor.has_permission(Permission.READ_USAGE)


_DENIALS: Final = ListPage(
    template="console/content_exclusion/denials.html",
    fragment="console/content_exclusion/_denials.html",
    query=_find_denials,
    page_rows=100,
    form=PeriodForm,
    orders=_ORDERS,
    context=_build_context,
    rejects_invalid_filters=True,
    csv=CsvFile(
        "refused",
        {
            "reason": lambda row: row.reason,
            "mode": lambda row: row.mode,
            "user": lambda row: row.user,
            "count": lambda row: row.num_denials,
            "last_seen_at": lambda row: row.last_at,
        },
        notes=lambda query, _rows: [] if _shows_all_users(query) else [gettext("only your own")],
        query_rows=MAX_ROWS,  # all in one query, because each query counts all denials again
    ),
)


@require_GET
@member_required
def denials(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _DENIALS.render(request, member)

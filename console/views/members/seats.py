"""The table of seats: each member's last activity, and their figures of this month (UTC)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.labels import ROLE_LABELS
from console.texts.money_format import format_amount
from console.usage_filters.display_names import display_name
from console.usage_filters.number_format import format_count, format_share
from console.views.members.list import MEMBER_ORDERS
from console.views.members.tabs import tabs
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission, Role
from tenants.identity.members.search import MemberFilter
from tenants.identity.seats import Seat, find_seats

_IDLE: Final = "idle"  # value of the filter `activity`
_IDLE_DAYS: Final = 30  # as in the text of this filter value


class SeatFilterForm(forms.Form):
    q = forms.CharField(
        label=_("Search"),
        max_length=100,
        required=False,
        widget=forms.TextInput({"type": "search", "placeholder": _("Name or e-mail")}),
    )
    role = forms.ChoiceField(
        label=_("Role"), required=False, choices=[("", _("All")), *ROLE_LABELS.items()]
    )
    activity = forms.ChoiceField(
        label=_("Activity"),
        required=False,
        choices=[("", _("All")), (_IDLE, _("Idle for 30 days"))],
    )


@dataclass(frozen=True, slots=True)
class SeatRow:
    seat: Seat
    name: str  # the e-mail address if the member has no name
    role_name: str
    # The next four are "" if the tenant's reports hide the figures of single members.
    editor: str  # "": also if unknown
    requests: str
    acceptance: str  # "": also if no suggestion was shown
    cost: str  # "": also if the tenant has no plan, or the user may not see costs


@dataclass(frozen=True, slots=True)
class _SeatRowPage(Page[SeatRow]):
    min_users: int  # smaller groups are suppressed; 1: figures of single members are shown
    # None: no figures are shown, the tenant has no plan, or the user may not see costs.
    currency: Currency | None


def _find_seats(query: ListQuery) -> Page[SeatRow]:
    role, activity = query.filters.get("role"), query.filters.get("activity")
    member_filter = MemberFilter(
        text=query.filters.get("q", ""),
        role=Role(role) if role else None,
        idle_since=query.now - timedelta(days=_IDLE_DAYS) if activity == _IDLE else None,
        order=query.sorting.order,
        is_descending=query.sorting.is_descending,
    )
    seat_page = find_seats(
        actor=query.actor,
        member_filter=member_filter,
        limit=query.limit,
        cursor=query.cursor,
        now=query.now,
    )
    rows = [_present_seat(seat, seat_page.currency) for seat in seat_page.page.rows]
    return _SeatRowPage(rows, seat_page.page.next_cursor, seat_page.min_users, seat_page.currency)


def _present_seat(seat: Seat, currency: Currency | None) -> SeatRow:
    figures = seat.figures
    cost = None if figures is None else figures.cost_micros
    acceptance_rate = None if figures is None else figures.acceptance
    return SeatRow(
        seat=seat,
        name=seat.member.name or seat.member.email,
        role_name=str(ROLE_LABELS[seat.member.role]),
        editor="" if figures is None else display_name("editor", figures.editor),
        requests="" if figures is None else format_count(figures.requests),
        acceptance="" if acceptance_rate is None else format_share(acceptance_rate),
        cost="" if cost is None or currency is None else format_amount(cost, currency),
    )


def _build_context(query: ListQuery, page: Page[SeatRow]) -> dict[str, Any]:
    assert isinstance(page, _SeatRowPage)
    return {
        "tabs": tabs("members-seats"),
        "min_users": page.min_users,
        "has_figures": page.min_users == 1,
        "has_costs": page.currency is not None,
        "can_change": query.actor.has_permission(Permission.WRITE_POLICY),
    }


_SEATS: Final = ListPage(
    template="console/members/seats.html",
    fragment="console/members/_seats.html",
    query=_find_seats,
    form=SeatFilterForm,
    orders=MEMBER_ORDERS,
    context=_build_context,
    csv=CsvFile(
        "seats",
        {
            "email": lambda row: row.seat.member.email,
            "name": lambda row: row.seat.member.name,
            "role": lambda row: row.seat.member.role,
            "member_since": lambda row: row.seat.member.created_at,
            "last_active_at": lambda row: row.seat.last_active_at,
            "editor": lambda row: row.seat.figures and row.seat.figures.editor,
            "requests": lambda row: row.seat.figures and row.seat.figures.requests,
            "acceptance": lambda row: row.seat.figures and row.seat.figures.acceptance,
            "cost_micros": lambda row: row.seat.figures and row.seat.figures.cost_micros,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_MEMBERS)
def seats(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _SEATS.render(request, member)

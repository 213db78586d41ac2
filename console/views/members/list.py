"""The list of members, with their roles, teams and sign-in methods."""

from dataclasses import dataclass
from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.lists.sorting import SortOrders, TableSorting
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.labels import ROLE_LABELS
from console.views.members.presenters import name_sign_in_methods
from console.views.members.tabs import tabs
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission, Role
from tenants.identity.members.directory import MemberDirectoryRow
from tenants.identity.members.search import MemberFilter, MemberOrder, find_directory

MEMBER_ORDERS: Final = SortOrders(
    default=TableSorting(MemberOrder.EMAIL, is_descending=False),
    titles={MemberOrder.EMAIL: _("Member"), MemberOrder.SINCE: _("Since")},
)


class MemberFilterForm(forms.Form):
    q = forms.CharField(
        label=_("Search"),
        max_length=100,
        required=False,
        widget=forms.TextInput({"type": "search", "placeholder": _("Name or e-mail")}),
    )
    role = forms.ChoiceField(
        label=_("Role"), required=False, choices=[("", _("All")), *ROLE_LABELS.items()]
    )


@dataclass(frozen=True, slots=True)
class MemberListRow:
    row: MemberDirectoryRow
    name: str  # the e-mail address if the member has no name
    role_name: str
    teams: str  # names, separated by commas
    sign_in_methods: str  # names, separated by commas


def _find_members(query: ListQuery) -> Page[MemberListRow]:
    role = query.filters.get("role")
    member_filter = MemberFilter(
        text=query.filters.get("q", ""),
        role=Role(role) if role else None,
        order=query.sorting.order,
        is_descending=query.sorting.is_descending,
    )
    page = find_directory(
        actor=query.actor, member_filter=member_filter, limit=query.limit, cursor=query.cursor
    )
    return map_page(page, _present_member)


def _present_member(row: MemberDirectoryRow) -> MemberListRow:
    return MemberListRow(
        row=row,
        name=row.name or row.email,
        role_name=str(ROLE_LABELS[row.role]),
        teams=", ".join(row.teams),
        sign_in_methods=name_sign_in_methods(row.signs_in_by),
    )


_MEMBERS: Final = ListPage(
    template="console/members/list.html",
    fragment="console/members/_list.html",
    query=_find_members,
    form=MemberFilterForm,
    orders=MEMBER_ORDERS,
    context=lambda query, _page: {
        "tabs": tabs("members"),
        "can_invite": query.actor.has_permission(Permission.WRITE_MEMBERS),
    },
    csv=CsvFile(
        "members",
        {
            "email": lambda list_row: list_row.row.email,
            "name": lambda list_row: list_row.row.name,
            "role": lambda list_row: list_row.row.role,
            "teams": lambda list_row: list_row.teams,
            "signs_in_by": lambda list_row: ", ".join(list_row.row.signs_in_by),
            "last_seen_at": lambda list_row: list_row.row.last_seen_at,
            "member_since": lambda list_row: list_row.row.created_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_MEMBERS)
def members(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _MEMBERS.render(request, member)

"""The list of members."""

from dataclasses import dataclass
from typing import Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.lists.csv_response import (
    CsvRows,
    collect_rows,
    csv_error,
    csv_response,
    notes_of,
)
from console.layout.lists.sorting import TableSorting, headings, read_sorting, with_query
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.members.presenters import ROLE_NAMES, way_names
from console.views.members.tabs import tabs
from tenants.base.errors import InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission, Role
from tenants.identity.members.directory import MemberDirectoryRow
from tenants.identity.members.search import MemberFilter, MemberOrder, find_directory

_PAGE_ROWS: Final = 25
_BY_EMAIL: Final = TableSorting(MemberOrder.EMAIL, is_descending=False)
_TITLES: Final = {MemberOrder.EMAIL: _("Member"), MemberOrder.SINCE: _("Since")}


class FindMembers(forms.Form):
    q = forms.CharField(
        label=_("Search"),
        max_length=100,
        required=False,
        widget=forms.TextInput({"type": "search", "placeholder": _("Name or e-mail")}),
    )
    role = forms.ChoiceField(
        label=_("Role"), required=False, choices=[("", _("All")), *ROLE_NAMES.items()]
    )


@dataclass(frozen=True, slots=True)
class MemberListRow:
    row: MemberDirectoryRow
    name: str  # or the address if there is none
    role_name: str
    teams: str
    ways: str


@require_GET
@member_required
@permission_required(Permission.READ_MEMBERS)
def members(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    actor = member.actor
    form, sorting = FindMembers(request.GET), read_sorting(request, _BY_EMAIL)
    is_file = request.GET.get("as") == "csv"
    if is_file and not form.is_valid():
        return csv_error(form)
    wanted = _wanted(form, sorting)

    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[MemberDirectoryRow]:
        return find_directory(actor=actor, wanted=wanted, limit=limit, cursor=cursor)

    try:
        if is_file:
            return _file(collect_rows(page_after))
        page = page_after(request.GET.get("cursor"), _PAGE_ROWS)
    except InvalidValue as error:
        raise Http404 from error
    context = {
        "form": form,
        "lines": [_line(row) for row in page.rows],
        "headings": headings(request, sorting, _TITLES),
        "next_url": with_query(request, cursor=page.next_cursor) if page.next_cursor else "",
        "file_url": with_query(request, **{"as": "csv"}),
        "is_narrowed": bool(request.GET),
        "tabs": tabs("members"),
        "can_invite": actor.has_permission(Permission.WRITE_MEMBERS),
    }
    part = "console/members/_rows.html"
    return render_page(request, member, "console/members/members.html", context, part=part)


def _wanted(form: FindMembers, sorting: TableSorting[MemberOrder]) -> MemberFilter:
    """Return the filter without invalid values: a link may come from an older release."""
    form.is_valid()
    role = form.cleaned_data.get("role")
    return MemberFilter(
        text=form.cleaned_data.get("q", ""),
        role=Role(role) if role else None,
        order=sorting.order,
        is_descending=sorting.is_descending,
    )


def _line(row: MemberDirectoryRow) -> MemberListRow:
    return MemberListRow(
        row=row,
        name=row.name or row.email,
        role_name=str(ROLE_NAMES[row.role]),
        teams=", ".join(row.teams),
        ways=way_names(row.signs_in_by),
    )


def _file(listed: CsvRows[MemberDirectoryRow]) -> HttpResponse:
    header = ("email", "name", "role", "teams", "signs_in_by", "last_seen_at", "member_since")
    cells = [
        (
            *(row.email, row.name, row.role, ", ".join(row.teams)),
            *(", ".join(row.signs_in_by), row.last_seen_at, row.created_at),
        )
        for row in listed.rows
    ]
    return csv_response("members", header, cells, notes=notes_of(listed))

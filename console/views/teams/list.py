"""The list of teams, and the creation of a team."""

from typing import Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from console.error_messages import translate_error
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
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.identity.teams.operations import MAX_NAME_CHARS, create_team
from tenants.identity.teams.queries import TeamView
from tenants.identity.teams.search import TeamFilter, TeamOrder, find_teams

_PAGE_ROWS: Final = 25
_BY_NAME: Final = TableSorting(TeamOrder.NAME, is_descending=False)
_TITLES: Final = {TeamOrder.NAME: _("Team"), TeamOrder.CREATED: _("Created")}


class FindTeams(forms.Form):
    q = forms.CharField(
        label=_("Search"),
        max_length=100,
        required=False,
        widget=forms.TextInput({"type": "search", "placeholder": _("Name")}),
    )


class TeamForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=MAX_NAME_CHARS,
        widget=forms.TextInput({"autocomplete": "off", "autofocus": True}),
    )


@require_GET
@member_required
@permission_required(Permission.READ_TEAMS)
def teams(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    actor = member.actor
    form, sorting = FindTeams(request.GET), read_sorting(request, _BY_NAME)
    is_file = request.GET.get("as") == "csv"
    if not form.is_valid() and is_file:
        return csv_error(form)
    wanted = TeamFilter(
        text=form.cleaned_data.get("q", ""),
        order=sorting.order,
        is_descending=sorting.is_descending,
    )

    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[TeamView]:
        return find_teams(actor=actor, wanted=wanted, limit=limit, cursor=cursor)

    try:
        if is_file:
            return _file(collect_rows(page_after))
        page = page_after(request.GET.get("cursor"), _PAGE_ROWS)
    except InvalidValue as error:
        raise Http404 from error
    context = {
        "form": form,
        "teams": page.rows,
        "headings": headings(request, sorting, _TITLES),
        "next_url": with_query(request, cursor=page.next_cursor) if page.next_cursor else "",
        "file_url": with_query(request, **{"as": "csv"}),
        "is_narrowed": bool(request.GET),
        "can_change": actor.has_permission(Permission.WRITE_TEAMS),
    }
    part = "console/teams/_rows.html"
    return render_page(request, member, "console/teams/teams.html", context, part=part)


def _file(listed: CsvRows[TeamView]) -> HttpResponse:
    rows = [(team.name, team.num_members, team.created_at) for team in listed.rows]
    header = ("name", "num_members", "created_at")
    return csv_response("teams", header, rows, notes=notes_of(listed))


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_TEAMS)
def new(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = TeamForm(request.POST or None)
    if request.method == "GET" or not form.is_valid():
        status = 200 if request.method == "GET" else 400
        return render_page(request, member, "console/teams/new.html", {"form": form}, status=status)
    try:
        made = create_team(actor=member.actor, name=form.cleaned_data["name"], now=timezone.now())
    except (Conflict, InvalidValue) as error:
        form.add_error("name", translate_error(error))
        return render_page(request, member, "console/teams/new.html", {"form": form}, status=400)
    toast(request, gettext("Team %(name)s created.") % {"name": made.name})
    return redirect("console:teams-team", team_id=made.id)

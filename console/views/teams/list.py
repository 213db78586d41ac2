"""The list of teams, and the form that creates a team."""

from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.lists.sorting import SortOrders, TableSorting
from console.layout.permission_required import permission_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.identity.teams.operations import MAX_NAME_CHARS, create_team
from tenants.identity.teams.queries import TeamView
from tenants.identity.teams.search import TeamFilter, TeamOrder, find_teams

_ORDERS: Final = SortOrders(
    default=TableSorting(TeamOrder.NAME, is_descending=False),
    titles={TeamOrder.NAME: _("Team"), TeamOrder.CREATED: _("Created")},
)


class TeamFilterForm(forms.Form):
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


def _find_teams(query: ListQuery) -> Page[TeamView]:
    team_filter = TeamFilter(
        text=query.filters.get("q", ""),
        order=query.sorting.order,
        is_descending=query.sorting.is_descending,
    )
    return find_teams(
        actor=query.actor, team_filter=team_filter, limit=query.limit, cursor=query.cursor
    )


_TEAMS: Final = ListPage(
    template="console/teams/list.html",
    fragment="console/teams/_list.html",
    query=_find_teams,
    form=TeamFilterForm,
    orders=_ORDERS,
    context=lambda query, _page: {"can_change": query.actor.has_permission(Permission.WRITE_TEAMS)},
    csv=CsvFile(
        "teams",
        {
            "name": lambda team: team.name,
            "num_members": lambda team: team.num_members,
            "created_at": lambda team: team.created_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_TEAMS)
def teams(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _TEAMS.render(request, member)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_TEAMS)
def new_team(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = TeamForm(request.POST or None)
    if request.method == "GET" or not form.is_valid():
        status = 200 if request.method == "GET" else 400
        return render_page(
            request, member, "console/teams/create.html", {"form": form}, status=status
        )
    try:
        team = create_team(actor=member.actor, name=form.cleaned_data["name"], now=timezone.now())
    except (Conflict, InvalidValue) as error:
        form.add_error("name", translate_error(error))
        return render_page(request, member, "console/teams/create.html", {"form": form}, status=400)
    toast(request, gettext("Team %(name)s created.") % {"name": team.name})
    return redirect("console:teams-team", team_id=team.id)

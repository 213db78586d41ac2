"""The page of one team, and the actions that change its members, rename it and delete it."""

import uuid
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from caret.foundation.ids import UserId
from console.layout.htmx import render_page
from console.layout.lists.list_page import ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.texts.labels import ROLE_LABELS
from console.views.teams.list import TeamForm
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import MAX_PAGE, Page, map_page
from tenants.base.permissions import Permission
from tenants.identity.members.queries import find_member
from tenants.identity.members.search import MemberFilter, find_member_by_email, search_members
from tenants.identity.teams.operations import (
    add_team_member,
    delete_team,
    remove_team_member,
    rename_team,
)
from tenants.identity.teams.queries import TeamView, find_team
from tenants.identity.teams.search import is_managed_by_scim
from tenants.security.authorization.directory import MemberRow

_PAGE: Final = "console/teams/detail.html"


class AddMemberForm(forms.Form):
    email = forms.EmailField(
        label=_("Member's e-mail address"),
        widget=forms.EmailInput({"list": "others", "autocomplete": "off"}),
    )


_TeamMemberRow = tuple[MemberRow, Promise]  # a member, and the name of their role


@require_GET
@member_required
def show_team(request: HttpRequest, member: CurrentMember, team_id: uuid.UUID) -> HttpResponse:
    return _render_page(
        request, member, find_team(actor=member.actor, team_id=team_id), AddMemberForm()
    )


@require_POST
@member_required
@permission_required(Permission.WRITE_TEAMS)
def add_member(request: HttpRequest, member: CurrentMember, team_id: uuid.UUID) -> HttpResponse:
    team = find_team(actor=member.actor, team_id=team_id)
    form = AddMemberForm(request.POST)
    if not form.is_valid():
        return _render_page(request, member, team, form, status=400)
    new_member = find_member_by_email(actor=member.actor, email=form.cleaned_data["email"])
    if new_member is None:
        form.add_error("email", gettext("No member has this e-mail address."))
        return _render_page(request, member, team, form, status=400)
    try:
        add_team_member(
            actor=member.actor, team_id=team_id, user_id=new_member.user_id, now=timezone.now()
        )
    except Conflict as error:
        form.add_error("email", translate_error(error))
        return _render_page(request, member, team, form, status=400)
    names = {"who": new_member.email, "team": team.name}
    undo_url = reverse("console:teams-take-out", args=[team_id, new_member.user_id])
    toast(request, gettext("Added %(who)s to %(team)s.") % names, undo_url=undo_url)
    return redirect("console:teams-team", team_id=team_id)


@require_POST
@member_required
@permission_required(Permission.WRITE_TEAMS)
def undo_remove_member(
    request: HttpRequest, member: CurrentMember, team_id: uuid.UUID, user_id: uuid.UUID
) -> HttpResponse:
    """Add a removed member to the team again, for the undo button."""
    team = find_team(actor=member.actor, team_id=team_id)
    try:
        add_team_member(
            actor=member.actor, team_id=team_id, user_id=UserId(str(user_id)), now=timezone.now()
        )
    except Conflict as error:
        messages.error(request, translate_error(error))
    else:
        toast(
            request, gettext("Added %(who)s back to %(team)s.") % _names_of(member, team, user_id)
        )
    return redirect("console:teams-team", team_id=team_id)


@require_POST
@member_required
@permission_required(Permission.WRITE_TEAMS)
def remove_member(
    request: HttpRequest, member: CurrentMember, team_id: uuid.UUID, user_id: uuid.UUID
) -> HttpResponse:
    team = find_team(actor=member.actor, team_id=team_id)
    try:
        remove_team_member(
            actor=member.actor, team_id=team_id, user_id=UserId(str(user_id)), now=timezone.now()
        )
    except Conflict as error:
        messages.error(request, translate_error(error))
    else:
        undo_url = reverse("console:teams-put-back", args=[team_id, user_id])
        text = gettext("Removed %(who)s from %(team)s.") % _names_of(member, team, user_id)
        toast(request, text, undo_url=undo_url)
    return redirect("console:teams-team", team_id=team_id)


def _names_of(member: CurrentMember, team: TeamView, user_id: uuid.UUID) -> dict[str, str]:
    """Return the member's e-mail address and the team's name, for messages."""
    target = find_member(actor=member.actor, user_id=UserId(str(user_id)))
    return {"who": target.email, "team": team.name}


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_TEAMS)
def rename(request: HttpRequest, member: CurrentMember, team_id: uuid.UUID) -> HttpResponse:
    team = find_team(actor=member.actor, team_id=team_id)
    form = TeamForm(request.POST or None, initial={"name": team.name})
    context = {"form": form, "team": team}
    if request.method == "GET":
        return render_page(request, member, "console/teams/rename.html", context)
    if not form.is_valid() or not _rename_team(member, team, form):
        return render_page(request, member, "console/teams/rename.html", context, status=400)
    _show_renamed_toast(request, team_id, before=team.name, after=form.cleaned_data["name"])
    return redirect("console:teams-team", team_id=team_id)


@require_POST
@member_required
@permission_required(Permission.WRITE_TEAMS)
def undo_rename(request: HttpRequest, member: CurrentMember, team_id: uuid.UUID) -> HttpResponse:
    """Restore the previous name.

    The query parameter `from` is the name that the team must still have; `to` is the previous name.
    """
    names = {name: request.GET.get(name, "") for name in ("from", "to")}
    try:
        rename_team(
            actor=member.actor,
            team_id=team_id,
            name=names["to"],
            expected_name=names["from"],
            now=timezone.now(),
        )
    except (Conflict, InvalidValue) as error:
        messages.error(request, translate_error(error))
    else:
        toast(request, gettext("Team renamed back to %(name)s.") % {"name": names["to"]})
    return redirect("console:teams-team", team_id=team_id)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_TEAMS)
@step_up_required
def delete(request: HttpRequest, member: CurrentMember, team_id: uuid.UUID) -> HttpResponse:
    team = find_team(actor=member.actor, team_id=team_id)
    if request.method == "GET":
        return render_page(request, member, "console/teams/delete.html", {"team": team})
    try:
        delete_team(actor=member.actor, team_id=team_id, now=timezone.now())
    except Conflict as error:
        messages.error(request, translate_error(error))
        return redirect("console:teams-team", team_id=team_id)
    toast(request, gettext("Team %(name)s deleted.") % {"name": team.name})
    return redirect("console:teams")


def _rename_team(member: CurrentMember, team: TeamView, form: TeamForm) -> bool:
    """Rename the team. If that fails, add the error to the form and return False."""
    try:
        rename_team(
            actor=member.actor,
            team_id=team.id,
            name=form.cleaned_data["name"],
            now=timezone.now(),
        )
    except (Conflict, InvalidValue) as error:
        form.add_error("name", translate_error(error))
        return False
    return True


def _show_renamed_toast(
    request: HttpRequest, team_id: uuid.UUID, *, before: str, after: str
) -> None:
    undo_path = reverse("console:teams-undo-rename", args=[team_id])
    names = urlencode({"from": after.strip(), "to": before})
    toast(request, gettext("Team renamed."), undo_url=f"{undo_path}?{names}")


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    team: TeamView,
    form: AddMemberForm,
    status: int = 200,
) -> HttpResponse:
    """Show the team. Users without READ_MEMBERS, such as the billing role, see no members."""
    actor = member.actor
    reads_members = actor.has_permission(Permission.READ_MEMBERS)
    by_scim = is_managed_by_scim(actor=actor, team_id=team.id)
    can_change = actor.has_permission(Permission.WRITE_TEAMS) and not by_scim
    context: dict[str, Any] = {
        "team": team,
        "form": form,
        "by_scim": by_scim,
        "can_change": can_change,
        "reads_members": reads_members,
        "writes_policy": actor.has_permission(Permission.WRITE_POLICY),
        "reads_budgets": actor.has_permission(Permission.READ_BILLING),
        "others": [],  # e-mail addresses that the form suggests
    }
    if reads_members:
        context |= _build_member_list(team.id).page_context(request, member)
    if reads_members and can_change:
        candidate_filter = MemberFilter(not_in_team_id=team.id)
        page = search_members(
            actor=actor, member_filter=candidate_filter, limit=MAX_PAGE, cursor=None
        )
        context["others"] = [row.email for row in page.rows]
    return render_page(request, member, _PAGE, context, status=status)


def _build_member_list(team_id: uuid.UUID) -> ListPage[_TeamMemberRow]:
    def find_members(query: ListQuery) -> Page[_TeamMemberRow]:
        member_filter = MemberFilter(team_id=team_id)
        page = search_members(
            actor=query.actor, member_filter=member_filter, limit=query.limit, cursor=query.cursor
        )
        return map_page(page, lambda row: (row, ROLE_LABELS[row.role]))

    return ListPage(template=_PAGE, query=find_members, page_rows=50)

"""The list of policy overrides, and the form that chooses the team or user of a new override."""

import json
from typing import Final, NamedTuple
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.overrides.presenters import override_lines
from console.views.policies.tabs import tabs
from tenants.base.pagination import MAX_PAGE, Page, map_page
from tenants.base.permissions import Permission
from tenants.identity.members.search import find_member_by_email
from tenants.identity.teams.queries import read_page_of_teams
from tenants.policy.overrides.document import serialize_override
from tenants.policy.overrides.queries import (
    OverrideInForce,
    OverrideSubject,
    SubjectKind,
    list_overrides,
)

_MAX_EMAIL_CHARS: Final = 254  # the longest address that RFC 5321 allows


class SubjectForm(forms.Form):
    """The team or the user of a new override. Exactly one of the fields must be filled in."""

    team = forms.ChoiceField(label=_("Team"), required=False)
    user_email = forms.CharField(
        label=_("… or enter a member's e-mail address"),
        required=False,
        max_length=_MAX_EMAIL_CHARS,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )


class _OverrideRow(NamedTuple):
    in_force: OverrideInForce
    lines: dict[str, list[str]]  # the formatted values, by the title of the field


def _find_overrides(query: ListQuery) -> Page[_OverrideRow]:
    page = list_overrides(actor=query.actor, limit=query.limit, cursor=query.cursor)
    return map_page(
        page, lambda in_force: _OverrideRow(in_force, override_lines(in_force.override))
    )


_OVERRIDES: Final = ListPage(
    template="console/policies/overrides/list.html",
    fragment="console/policies/overrides/_list.html",
    query=_find_overrides,
    context=lambda query, _page: {
        "tabs": tabs(query.request, query.member),
        "may_edit": query.actor.has_permission(Permission.WRITE_POLICY),
    },
    csv=CsvFile(
        "overrides",
        {
            "kind": lambda row: row.in_force.subject.kind,
            "name": lambda row: row.in_force.name,
            "version": lambda row: row.in_force.version,
            # The JSON document, as the API accepts it.
            "override": lambda row: json.dumps(serialize_override(row.in_force.override)),
            "author": lambda row: row.in_force.author_email or row.in_force.author_key,
            "reason": lambda row: row.in_force.reason,
            "created_at": lambda row: row.in_force.created_at,
        },
    ),
)


@require_GET
@member_required
def overrides(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _OVERRIDES.render(request, member)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def choose_subject(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Choose the team or user of a new override."""
    form = SubjectForm(request.POST if request.method == "POST" else None)
    teams = read_page_of_teams(actor=member.actor, limit=MAX_PAGE, cursor=None).rows
    choices = [("", gettext("No team")), *((str(team.id), team.name) for team in teams)]
    form.fields["team"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField
    if form.is_bound and form.is_valid():
        subject = _find_subject(member, form)
        if subject is not None:
            return redirect("console:policies-override", subject.kind.value, subject.id)
    status = 400 if form.errors else 200
    return render_page(
        request, member, "console/policies/overrides/create.html", {"form": form}, status=status
    )


def _find_subject(member: CurrentMember, form: SubjectForm) -> OverrideSubject | None:
    """Return the chosen team or user; None, with an error in the form, if the choice is invalid."""
    team, email = form.cleaned_data["team"], form.cleaned_data["user_email"]
    if bool(team) == bool(email):  # both or neither
        form.add_error("team", gettext("Choose a team or enter a member."))
        return None
    if team:
        return OverrideSubject(SubjectKind.TEAM, UUID(team))
    chosen_member = find_member_by_email(actor=member.actor, email=email)
    if chosen_member is None:
        form.add_error("user_email", gettext("This user is not a member of the tenant."))
        return None
    return OverrideSubject(SubjectKind.USER, UUID(chosen_member.user_id))

"""Policy overrides of teams and users: list, edit, remove, undo."""

import json
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from caret.contracts.policy import PolicyOverride
from console.error_messages import translate_error
from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_url
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.detail import tabs
from console.views.policies.dry_run_presenters import summarize_dry_run
from console.views.policies.form_fields import add_refusal, whole_number
from console.views.policies.override_forms import LayerForm, groups_of, initial_of, layer_of
from console.views.policies.override_presenters import layer_changes, layer_lines
from console.views.policies.policy_draft import read_json
from console.views.policies.review import ReasonForm
from console.views.policies.system_reasons import reason_of_undoing
from tenants.base.errors import Conflict, InvalidValue, VersionConflict
from tenants.base.pagination import MAX_PAGE, Page, map_page
from tenants.base.permissions import Permission
from tenants.identity.members.queries import find_member_by_email
from tenants.identity.teams.queries import page_of_teams
from tenants.policy.dry_run import preview_layer
from tenants.policy.overrides.document import read_layer, write_layer
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import (
    OverrideInForce,
    OverrideSubject,
    SubjectKind,
    find_layer_version,
    find_override,
    page_of_layers,
)

_MAX_EMAIL_CHARS: Final = 254


class SubjectForm(forms.Form):
    """A team or a user."""

    team = forms.ChoiceField(label=_("Team"), required=False)
    user_email = forms.CharField(
        label=_("… or enter a member's e-mail address"),
        required=False,
        max_length=_MAX_EMAIL_CHARS,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )


_OverrideRow = tuple[OverrideInForce, dict[str, list[str]]]  # an override and its presentation


def _find_overrides(asked: ListQuery) -> Page[_OverrideRow]:
    page = page_of_layers(actor=asked.actor, limit=asked.limit, cursor=asked.cursor)
    return map_page(page, lambda found: (found, layer_lines(found.layer)))


_OVERRIDES: Final = ListPage(
    template="console/policies/layers.html",
    fragment="console/policies/_layers.html",
    query=_find_overrides,
    context=lambda asked, _: {
        "tabs": tabs(asked.request, asked.member),
        "may_edit": asked.actor.has_permission(Permission.WRITE_POLICY),
    },
    csv=CsvFile(
        "layers",
        {
            "kind": lambda row: row[0].subject.kind,
            "name": lambda row: row[0].name,
            "version": lambda row: row[0].version,
            # The JSON document that the API accepts.
            "override": lambda row: json.dumps(write_layer(row[0].layer)),
            "author": lambda row: row[0].author_email or row[0].author_key,
            "reason": lambda row: row[0].reason,
            "created_at": lambda row: row[0].created_at,
        },
    ),
)


@require_GET
@member_required
def layers(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _OVERRIDES.render(request, member)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def choose(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Choose the team or user of a new override."""
    form = SubjectForm(request.POST if request.method == "POST" else None)
    teams = page_of_teams(actor=member.actor, limit=MAX_PAGE, cursor=None).rows
    choices = [("", gettext("None")), *((str(team.id), team.name) for team in teams)]
    form.fields["team"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField
    if form.is_bound and form.is_valid():
        subject = _find_subject(member, form)
        if subject is not None:
            return redirect("console:policies-layer", subject.kind.value, subject.id)
    status = 400 if form.errors else 200
    return render_page(
        request, member, "console/policies/new_layer.html", {"form": form}, status=status
    )


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def layer(request: HttpRequest, member: CurrentMember, kind: str, subject_id: UUID) -> HttpResponse:
    """Edit the override. A valid POST continues with its review."""
    held = find_override(actor=member.actor, subject=_to_subject(kind, subject_id))
    if request.method == "GET":
        return _render_edit_page(request, member, held, LayerForm(initial=initial_of(held.layer)))
    if request.POST.get("step") == "edit":
        said = read_layer(read_json(request.POST.get("document", "")))
        return _render_edit_page(request, member, held, LayerForm(initial=initial_of(said)))
    form = LayerForm(request.POST)
    if form.is_valid():
        try:
            said = layer_of(form.cleaned_data)
        except InvalidValue as error:
            add_refusal(form, error)
        else:
            return _render_review(request, member, held, said)
    return _render_edit_page(request, member, held, form, status=400)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def review(
    request: HttpRequest, member: CurrentMember, kind: str, subject_id: UUID
) -> HttpResponse:
    """Review the removal of the override (GET), or save the reviewed override (POST)."""
    held = find_override(actor=member.actor, subject=_to_subject(kind, subject_id))
    if request.method == "GET":
        return _render_review(request, member, held, PolicyOverride())
    said = read_layer(read_json(request.POST.get("document", "")))
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _render_review(request, member, held, said, form)
    if (way := _way_if_grave(request, member, held, said)) is not None:
        return way
    try:
        saved = set_override(
            actor=member.actor,
            subject=held.subject,
            document=write_layer(said),
            reason=form.cleaned_data["reason"],
            expected_version=_read_replaced_version(request, held),
            now=timezone.now(),
        )
    except VersionConflict:
        held = find_override(actor=member.actor, subject=held.subject)
        return _render_review(request, member, held, said, form)
    except Conflict as error:
        form.add_error(None, translate_error(error))
        return _render_review(request, member, held, said, form)
    toast(
        request,
        gettext("Saved. Gateways apply it within a second."),
        undo_url=reverse("console:policies-undo-layer", args=[kind, subject_id, saved.version]),
    )
    return redirect("console:policies-layers")


@require_POST
@member_required
@permission_required(Permission.WRITE_POLICY)
def undo(
    request: HttpRequest, member: CurrentMember, kind: str, subject_id: UUID, version: int
) -> HttpResponse:
    """Restore the override before this version, if this version is still in force."""
    held = find_override(actor=member.actor, subject=_to_subject(kind, subject_id))
    if version != held.version or version == 0:
        said = gettext("Not undone: someone has changed this override since.")
        messages.error(request, said)
        return redirect("console:policies-layers")
    before = find_layer_version(actor=member.actor, subject=held.subject, version=version - 1)
    if (way := _way_if_grave(request, member, held, before)) is not None:
        return way
    try:
        set_override(
            actor=member.actor,
            subject=held.subject,
            document=write_layer(before),
            reason=reason_of_undoing(version),
            expected_version=version,
            now=timezone.now(),
        )
    except Conflict as error:  # includes VersionConflict
        messages.error(request, translate_error(error))
    else:
        toast(request, gettext("Change undone. Gateways apply it within a second."))
    return redirect("console:policies-layers")


def _way_if_grave(
    request: HttpRequest, member: CurrentMember, held: OverrideInForce, said: PolicyOverride
) -> HttpResponse | None:
    lets_in_by_less = held.layer.is_mfa_required and not said.is_mfa_required
    return step_up_url(request, member) if lets_in_by_less else None


def _find_subject(member: CurrentMember, form: SubjectForm) -> OverrideSubject | None:
    """Return the chosen team or user; None if the form has an error."""
    team, email = form.cleaned_data["team"], form.cleaned_data["user_email"]
    if bool(team) == bool(email):
        form.add_error("team", gettext("Choose a team or enter a member."))
        return None
    if team:
        return OverrideSubject(SubjectKind.TEAM, UUID(team))
    found = find_member_by_email(actor=member.actor, email=email)
    if found is None:
        form.add_error("user_email", gettext("This user is not a member of the tenant."))
        return None
    return OverrideSubject(SubjectKind.USER, UUID(found.user_id))


def _to_subject(kind: str, subject_id: UUID) -> OverrideSubject:
    try:
        return OverrideSubject(SubjectKind(kind), subject_id)
    except ValueError as error:
        raise Http404 from error


def _read_replaced_version(request: HttpRequest, held: OverrideInForce) -> int:
    """Return the version that the user has seen; by default the one in force."""
    replaces = whole_number(request.POST.get("replaces", ""))
    return held.version if replaces is None else replaces


def _render_edit_page(
    request: HttpRequest,
    member: CurrentMember,
    held: OverrideInForce,
    form: LayerForm,
    status: int = 200,
) -> HttpResponse:
    context = {
        "held": held,
        "form": form,
        "groups": groups_of(form),
        "replaces": _read_replaced_version(request, held),
    }
    return render_page(request, member, "console/policies/layer.html", context, status=status)


def _render_review(
    request: HttpRequest,
    member: CurrentMember,
    held: OverrideInForce,
    said: PolicyOverride,
    form: ReasonForm | None = None,
) -> HttpResponse:
    """Show the review.

    After a concurrent change, show the current override beside the wanted one.
    """
    found = preview_layer(actor=member.actor, subject=held.subject, document=write_layer(said))
    is_outdated = _read_replaced_version(request, held) != held.version
    is_wrong = form is not None and bool(form.errors)
    context: dict[str, Any] = {
        "held": held,
        "document": json.dumps(write_layer(said)),
        "form": form or ReasonForm(),
        "changes": layer_changes(held.layer, said),
        "effects": summarize_dry_run(found),
        "is_outdated": is_outdated,
        "is_lifted": said == PolicyOverride(),
    }
    status = 409 if is_outdated else 400 if is_wrong else 200
    return render_page(
        request, member, "console/policies/layer_review.html", context, status=status
    )

"""The pages that edit, review and remove one policy override, and undo its last change."""

import json
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from caret.contracts.policy import PolicyOverride
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_redirect
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.policies.choices import read_choices
from console.views.policies.form_fields import add_refusal, parse_whole_number
from console.views.policies.overrides.forms import OverrideForm, iterate_field_groups, override_of
from console.views.policies.overrides.presenters import override_changes
from console.views.policies.review.policy_draft import read_json
from console.views.policies.review.presenters import summarize_dry_run
from console.views.policies.review.review import ReasonForm
from console.views.policies.system_reasons import reason_of_undoing
from tenants.base.errors import Conflict, InvalidValue, VersionConflict
from tenants.base.permissions import Permission
from tenants.policy.dry_run import preview_override_change
from tenants.policy.overrides.document import parse_override, serialize_override
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import (
    OverrideInForce,
    OverrideSubject,
    SubjectKind,
    find_override,
    find_override_version,
)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def edit(request: HttpRequest, member: CurrentMember, kind: str, subject_id: UUID) -> HttpResponse:
    """Edit the override. A valid POST shows the review of the new override.

    With `step=edit`, the review page sends the override back to the form.
    """
    current = find_override(actor=member.actor, subject=_to_subject(kind, subject_id))
    if request.method == "GET":
        return _render_edit_page(request, member, current, _make_form(member, current.override))
    if request.POST.get("step") == "edit":
        override = parse_override(read_json(request.POST.get("document", "")))
        return _render_edit_page(request, member, current, _make_form(member, override))
    form = _make_form(member, current.override, request.POST)
    if form.is_valid():
        try:
            override = override_of(form.cleaned_data)
        except InvalidValue as error:
            add_refusal(form, error)
        else:
            return _render_review(request, member, current, override)
    return _render_edit_page(request, member, current, form, status=400)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def review(
    request: HttpRequest, member: CurrentMember, kind: str, subject_id: UUID
) -> HttpResponse:
    """Review the removal of the override (GET), or save the reviewed override (POST)."""
    current = find_override(actor=member.actor, subject=_to_subject(kind, subject_id))
    if request.method == "GET":  # an override without any restriction removes the current one
        return _render_review(request, member, current, PolicyOverride())
    override = parse_override(read_json(request.POST.get("document", "")))
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _render_review(request, member, current, override, form)
    if (
        step_up := _step_up_if_mfa_becomes_optional(request, member, current, override)
    ) is not None:
        return step_up
    try:
        saved_override = set_override(
            actor=member.actor,
            subject=current.subject,
            document=serialize_override(override),
            reason=form.cleaned_data["reason"],
            expected_version=_expected_version(request, current),
            now=timezone.now(),
        )
    except VersionConflict:
        current = find_override(actor=member.actor, subject=current.subject)
        return _render_review(request, member, current, override, form)
    except Conflict as error:
        form.add_error(None, translate_error(error))
        return _render_review(request, member, current, override, form)
    text = gettext("Override saved. Gateways apply it within a second.")
    if override == PolicyOverride():
        text = gettext("Override removed. Gateways apply this within a second.")
    toast(
        request,
        text,
        undo_url=reverse(
            "console:policies-undo-override", args=[kind, subject_id, saved_override.version]
        ),
    )
    return redirect("console:policies-overrides")


@require_POST
@member_required
@permission_required(Permission.WRITE_POLICY)
def undo(
    request: HttpRequest, member: CurrentMember, kind: str, subject_id: UUID, version: int
) -> HttpResponse:
    """Restore the override before `version`, if `version` is still in force."""
    current = find_override(actor=member.actor, subject=_to_subject(kind, subject_id))
    if version != current.version or version == 0:  # 0: no override was ever set
        text = gettext("Not undone: someone has changed this override since.")
        messages.error(request, text)
        return redirect("console:policies-overrides")
    before = find_override_version(actor=member.actor, subject=current.subject, version=version - 1)
    if (step_up := _step_up_if_mfa_becomes_optional(request, member, current, before)) is not None:
        return step_up
    try:
        set_override(
            actor=member.actor,
            subject=current.subject,
            document=serialize_override(before),
            reason=reason_of_undoing(version),
            expected_version=version,
            now=timezone.now(),
        )
    except Conflict as error:  # includes VersionConflict
        messages.error(request, translate_error(error))
    else:
        toast(request, gettext("Change undone. Gateways apply this within a second."))
    return redirect("console:policies-overrides")


def _make_form(
    member: CurrentMember, override: PolicyOverride, data: QueryDict | None = None
) -> OverrideForm:
    return OverrideForm(data, override=override, choices=read_choices(member.actor))


def _step_up_if_mfa_becomes_optional(
    request: HttpRequest, member: CurrentMember, current: OverrideInForce, override: PolicyOverride
) -> HttpResponse | None:
    becomes_optional = current.override.is_mfa_required and not override.is_mfa_required
    return step_up_redirect(request, member) if becomes_optional else None


def _to_subject(kind: str, subject_id: UUID) -> OverrideSubject:
    try:
        return OverrideSubject(SubjectKind(kind), subject_id)
    except ValueError as error:
        raise Http404 from error


def _expected_version(request: HttpRequest, current: OverrideInForce) -> int:
    """Return the version that the submitted page showed; without one, the version in force."""
    expected_version = parse_whole_number(request.POST.get("expected_version", ""))
    return current.version if expected_version is None else expected_version


def _render_edit_page(
    request: HttpRequest,
    member: CurrentMember,
    current: OverrideInForce,
    form: OverrideForm,
    status: int = 200,
) -> HttpResponse:
    context = {
        "current": current,
        "form": form,
        "field_groups": iterate_field_groups(form),
        "expected_version": _expected_version(request, current),
    }
    return render_page(
        request, member, "console/policies/overrides/detail.html", context, status=status
    )


def _render_review(
    request: HttpRequest,
    member: CurrentMember,
    current: OverrideInForce,
    override: PolicyOverride,
    form: ReasonForm | None = None,
) -> HttpResponse:
    """Show the changes and the effect of `override`, compared with `current`.

    If `current` is newer than the version that the user has edited, the page says so.
    """
    dry_run = preview_override_change(
        actor=member.actor,
        subject=current.subject,
        document=serialize_override(override),
        now=timezone.now(),
    )
    is_outdated = _expected_version(request, current) != current.version
    has_errors = form is not None and bool(form.errors)
    context: dict[str, Any] = {
        "current": current,
        "document": json.dumps(serialize_override(override)),
        "form": form or ReasonForm(),
        "changes": override_changes(current.override, override),
        "effects": summarize_dry_run(dry_run),
        "is_outdated": is_outdated,
        "is_removal": override == PolicyOverride(),
    }
    status = 409 if is_outdated else (400 if has_errors else 200)
    return render_page(
        request, member, "console/policies/overrides/review.html", context, status=status
    )

"""The form that allows content capture in a tenant. Users can then consent to it.

The setting is a part of the policy, so a change is saved after a review.
"""

from typing import Any

import msgspec
from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from caret.contracts.policy import ContentCapturePolicy, TenantPolicy
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.form_fields import (
    add_refusal,
    checkbox_field,
    number_field,
    parse_whole_number,
)
from console.views.policies.review.policy_draft import PolicyDraft, read_draft
from console.views.policies.review.review import show_review
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.policy.document import MAX_CONTENT_RETENTION_DAYS, parse_policy, serialize_policy
from tenants.policy.queries import find_version, get_policy
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_VERSION,
    get_consent_text,
    require_current_version,
)


class ContentCaptureForm(forms.Form):
    content_capture = checkbox_field(
        _("Allow content capture"),
        _("If you turn this off, all users' consent ends and all captured content is erased."),
    )
    retention_days = number_field(
        _("Retention period in days"),
        MAX_CONTENT_RETENTION_DAYS,
        _("Content is erased after this period."),
    )
    training = checkbox_field(
        _("Allow users to consent to model training"), _("Users are asked separately.")
    )
    # The version of the consent text that the submitted page showed.
    wording = forms.CharField(widget=forms.HiddenInput, required=False, max_length=40)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        # Invalid days are not in `cleaned`. They have an error already.
        lacks_days = "retention_days" in cleaned and not cleaned["retention_days"]
        if cleaned.get("content_capture") and lacks_days:
            self.add_error("retention_days", _("Enter the number of days."))
        return cleaned


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def edit_content_capture(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show the form. A POST shows the review, or with `step=edit` the form with the draft."""
    if request.method == "GET":
        current = get_policy(actor=member.actor)
        return _render_page(
            request,
            member,
            ContentCaptureForm(initial=_initial_values(current.policy)),
            current.version,
        )
    if request.POST.get("step") == "edit":
        draft = read_draft(request.POST)
        return _render_page(
            request,
            member,
            ContentCaptureForm(initial=_initial_values(draft.policy)),
            draft.expected_version,
        )
    return _review_change(request, member)


def _review_change(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show the review of the change, or the form with its errors. Raises NotFound."""
    # No version has the number 0, so an invalid number raises NotFound.
    expected_version = parse_whole_number(request.POST.get("expected_version", "")) or 0
    base = find_version(actor=member.actor, version=expected_version)
    form = ContentCaptureForm(request.POST)
    if form.is_valid():
        try:
            policy = _to_policy(form.cleaned_data, base.policy)
        except InvalidValue as error:
            add_refusal(form, error)
        else:
            return show_review(
                request, member, PolicyDraft(policy, expected_version, origin="privacy")
            )
    return _render_page(request, member, form, expected_version, status=400)


def _to_policy(cleaned: dict[str, Any], base: TenantPolicy) -> TenantPolicy:
    """Return `base` with the submitted content capture.

    Raises InvalidValue, also if the submitted page showed an outdated consent text.
    """
    content_capture = None
    if cleaned["content_capture"]:
        require_current_version(
            "content_capture.consent_text",
            accepted_versions=[cleaned["wording"]],
            current=TENANT_CONSENT_VERSION,
        )
        content_capture = ContentCapturePolicy(
            TENANT_CONSENT_VERSION, cleaned["retention_days"], cleaned["training"]
        )
    # Parsing checks the bounds of the new policy.
    return parse_policy(
        serialize_policy(msgspec.structs.replace(base, content_capture=content_capture))
    )


def _initial_values(policy: TenantPolicy) -> dict[str, Any]:
    default = ContentCapturePolicy(
        TENANT_CONSENT_VERSION, DATA_CLASSES[DataClass.CONTENT].default_days
    )
    content_capture = policy.content_capture or default
    return {
        "content_capture": policy.content_capture is not None,
        "retention_days": content_capture.retention_days,
        "training": content_capture.training,
    }


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    form: ContentCaptureForm,
    expected_version: int,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "expected_version": expected_version,
        "consent_text": get_consent_text(TENANT_CONSENT_VERSION),
    }
    return render_page(
        request, member, "console/privacy/tenant_consent.html", context, status=status
    )

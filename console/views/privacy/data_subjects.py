"""Data subject requests: pages that export or erase the data of a current or former member."""

from typing import Final, cast
from uuid import UUID

import redis
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from caret.foundation.ids import UserId
from console.api.data_subjects import BUNDLE_LIMITS, bundle_response
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.texts.labels import ROLE_LABELS
from console.views.policies.review.review import ReasonForm
from console.views.privacy.list import tabs
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.permissions import Permission, Role
from tenants.compliance.data_subjects.export_bundle import BundleRequest
from tenants.compliance.data_subjects.operations import ErasureRequest, request_user_erasure
from tenants.compliance.data_subjects.queries import find_data_subject

_MAX_EMAIL_CHARS: Final = 254  # the longest address that RFC 5321 allows


class PersonForm(forms.Form):
    email = forms.CharField(
        label=_("E-mail address or ID"),
        help_text=_("Of a current or former member."),
        max_length=_MAX_EMAIL_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class ErasureForm(ReasonForm):
    """`typed` is the e-mail address of the person, to confirm the erasure."""

    typed = forms.CharField(
        label=_("Confirm the e-mail address"),
        help_text=_("Enter it again to make sure that you erase the right person's data."),
        max_length=_MAX_EMAIL_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    field_order = ("typed", "reason")


@require_GET
@member_required
def search_person(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    may = member.actor.has_permission
    # One of the two permissions is enough.
    if not may(Permission.EXPORT_DATA_SUBJECTS):
        member.actor.require(Permission.ERASE_DATA_SUBJECTS)
    form = PersonForm(request.GET if "email" in request.GET else None)
    if form.is_bound and form.is_valid():
        try:
            person = find_data_subject(actor=member.actor, text=form.cleaned_data["email"])
        except NotFound as error:
            form.add_error("email", translate_error(error))
        else:
            return redirect("console:privacy-person", person.user_id)
    context = {"tabs": tabs(request, member), "form": form}
    status = 400 if form.errors else 200
    return render_page(
        request, member, "console/privacy/data_subjects.html", context, status=status
    )


@require_GET
@member_required
def show_person(request: HttpRequest, member: CurrentMember, user_id: UUID) -> HttpResponse:
    return _render_page(request, member, user_id, ReasonForm())


@require_POST
@member_required
@permission_required(Permission.EXPORT_DATA_SUBJECTS)
@step_up_required
def export_person(request: HttpRequest, member: CurrentMember, user_id: UUID) -> HttpResponse:
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _render_page(request, member, user_id, form, status=400)
    bundle_request = BundleRequest(UserId(str(user_id)), form.cleaned_data["reason"], BUNDLE_LIMITS)
    response = download_bundle(request, member, bundle_request)
    return response or redirect("console:privacy-person", user_id)


def download_bundle(
    request: HttpRequest, member: CurrentMember, bundle_request: BundleRequest
) -> HttpResponse | None:
    """Return the export as a download.

    If it cannot be created, add a message for the next page and return None.
    """
    try:
        # The response is a StreamingHttpResponse. Middleware and server also accept this class.
        return cast(HttpResponse, bundle_response(request, member.actor, bundle_request))
    except Conflict as error:
        messages.error(request, translate_error(error))
    except (redis.RedisError, OSError):
        messages.error(
            request, gettext("The export cannot be created right now. Try again in a minute.")
        )
    return None


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.ERASE_DATA_SUBJECTS)
@step_up_required
def erase(request: HttpRequest, member: CurrentMember, user_id: UUID) -> HttpResponse:
    person = find_data_subject(actor=member.actor, text=str(user_id))
    form = ErasureForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        # E-mail addresses are stored in lower case.
        if form.cleaned_data["typed"].lower() != person.email:
            form.add_error("typed", gettext("The e-mail addresses do not match."))
        elif _request_erasure(member, person.user_id, form):
            text = gettext(
                "Erasure started. The encryption keys are destroyed; the rest "
                "is deleted within minutes."
            )
            toast(request, text)
            return redirect("console:privacy-erasures")
    context = {"person": person, "form": form}
    status = 400 if form.errors else 200
    return render_page(request, member, "console/privacy/erase.html", context, status=status)


def _request_erasure(member: CurrentMember, user_id: UserId, form: ErasureForm) -> bool:
    """Request the erasure. If that fails, add the error to the form and return False."""
    erasure_request = ErasureRequest(user_id, form.cleaned_data["reason"])
    try:
        request_user_erasure(
            actor=member.actor, erasure_request=erasure_request, now=timezone.now()
        )
    except (Conflict, InvalidValue) as error:
        form.add_error(None, translate_error(error))
        return False
    return True


def _render_page(
    request: HttpRequest, member: CurrentMember, user_id: UUID, form: ReasonForm, status: int = 200
) -> HttpResponse:
    person = find_data_subject(actor=member.actor, text=str(user_id))
    context = {
        "person": person,
        "role_name": ROLE_LABELS[Role(person.role)],
        "form": form,
        "may_export": member.actor.has_permission(Permission.EXPORT_DATA_SUBJECTS),
        "may_erase": member.actor.has_permission(Permission.ERASE_DATA_SUBJECTS),
    }
    return render_page(request, member, "console/privacy/data_subject.html", context, status=status)

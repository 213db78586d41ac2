"""The page that rotates an API key.

The key gets a new text. The old text stays valid for the time that the user chooses.
"""

from datetime import timedelta
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from console.layout.form_tokens import consume_form_token, issue_form_token
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.keys.created import show_once
from console.views.keys.detail import get_key_or_404
from console.views.keys.forms import RotateKeyForm
from console.views.keys.presenters import key_line
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import CreatedKey, KeyRotation, rotate_key
from tenants.identity.api_keys.queries import KeyView
from tenants.policy.queries import get_policy

_FORM: Final = "rotate-key"  # purpose of the form token, which can be used only once
# The form field that shows an error of `rotate_key`, by the field that the error names.
_FIELDS: Final = {"expires_at": "lifetime", "overlap_hours": "overlap", "reason": "reason"}


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.CREATE_KEYS)
def rotate(request: HttpRequest, member: CurrentMember, lookup_id: str) -> HttpResponse:
    key = get_key_or_404(member, lookup_id)
    if not key_line(member.actor, key).can_rotate:
        messages.warning(request, gettext("You can rotate only active keys."))
        return redirect("console:keys-key", lookup_id=key.lookup_id)
    if request.method == "GET":
        return _render_page(request, member, key, _build_form(request, member))
    if not consume_form_token(request, _FORM):
        messages.warning(
            request, gettext("You already submitted this form. We did not create a second secret.")
        )
        return redirect("console:keys-key", lookup_id=key.lookup_id)
    form = _build_form(request, member)
    created_key = _rotate_key(member, key, form)
    if created_key is None:
        return _render_page(request, member, key, form, status=400)
    return show_once(request, member, created_key, is_new=False)


def _build_form(request: HttpRequest, member: CurrentMember) -> RotateKeyForm:
    form = RotateKeyForm(request.POST or None)
    form.limit_lifetime(get_policy(actor=member.actor).policy.max_key_lifetime_days)
    return form


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    key: KeyView,
    form: RotateKeyForm,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "form_token": issue_form_token(request, _FORM),
        "line": key_line(member.actor, key),
    }
    return render_page(request, member, "console/keys/rotate.html", context, status=status)


def _rotate_key(member: CurrentMember, key: KeyView, form: RotateKeyForm) -> CreatedKey | None:
    """Rotate the key. Return None, with an error in the form, if the rotation is rejected."""
    now = timezone.now()
    if not form.is_valid():
        return None
    rotation = KeyRotation(
        overlap=timedelta(hours=form.cleaned_data["overlap"]),
        expires_at=form.new_expiry(now),
        reason=form.cleaned_data["reason"],
    )
    try:
        return rotate_key(actor=member.actor, lookup_id=key.lookup_id, rotation=rotation, now=now)
    except InvalidValue as error:
        form.add_error(_FIELDS.get(error.field), translate_error(error))
    except (Conflict, Forbidden) as error:
        form.add_error(None, translate_error(error))
    return None

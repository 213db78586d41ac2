"""SCIM tokens for identity providers: creation, which shows the text once, and revocation."""

import uuid

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from console.layout.form_tokens import consume_form_token
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.sign_in_settings.presenters import (
    TOKEN_FORM,
    TokenForm,
    build_service_provider_info,
    render_settings_page,
)
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.identity.scim.tokens import (
    ScimTokenView,
    create_scim_token,
    list_scim_tokens,
    revoke_scim_token,
)


@require_POST
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def create(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if not consume_form_token(request, TOKEN_FORM):
        messages.warning(
            request, gettext("You already submitted this form. We did not create a second token.")
        )
        return redirect("console:access")
    form = TokenForm(request.POST)
    if not form.is_valid():
        return render_settings_page(request, member, status=400, token_form=form)
    try:
        new_token = create_scim_token(
            actor=member.actor, name=form.cleaned_data["token_name"], now=timezone.now()
        )
    except (Conflict, InvalidValue) as error:
        form.add_error("token_name", translate_error(error))
        return render_settings_page(request, member, status=400, token_form=form)
    context = {
        "text": new_token.text,
        "token": new_token.token,
        "service_provider": build_service_provider_info(member),
    }
    return render_page(request, member, "console/sign_in_settings/scim_token_created.html", context)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def revoke(request: HttpRequest, member: CurrentMember, token_id: uuid.UUID) -> HttpResponse:
    token = _find_token(member, token_id)
    if request.method == "GET":
        return render_page(
            request, member, "console/sign_in_settings/revoke_scim_token.html", {"token": token}
        )
    revoke_scim_token(actor=member.actor, token_id=token_id, now=timezone.now())
    toast(request, gettext("%(name)s revoked. It no longer works.") % {"name": token.name})
    return redirect("console:access")


def _find_token(member: CurrentMember, token_id: uuid.UUID) -> ScimTokenView:
    """Return the token, which may be revoked already. Raises Http404."""
    for token in list_scim_tokens(actor=member.actor):
        if token.id == token_id:
            return token
    raise Http404

"""Tokens by which an identity provider speaks to us: made, shown once, revoked."""

import uuid

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from console.current_member import Member, for_members
from console.error_messages import told
from console.layout.form_tokens import take_form
from console.layout.htmx import show
from console.layout.permission_required import allowed
from console.layout.step_up import confirmed
from console.layout.toasts import toast
from console.views.sign_in_settings.presenters import TOKEN_FORM, TokenForm, access_page, ours
from tenants.base.errors import Conflict, Invalid
from tenants.base.permissions import Permission
from tenants.identity.scim.tokens import (
    ScimTokenView,
    create_scim_token,
    list_scim_tokens,
    revoke_scim_token,
)


@require_POST
@for_members
@allowed(Permission.WRITE_ACCESS)
@confirmed
def create(request: HttpRequest, member: Member) -> HttpResponse:
    if not take_form(request, TOKEN_FORM):
        messages.warning(request, gettext("This form was used already. No second token was made."))
        return redirect("console:access")
    form = TokenForm(request.POST)
    if not form.is_valid():
        return access_page(request, member, status=400, token_form=form)
    try:
        made = create_scim_token(
            actor=member.actor, name=form.cleaned_data["token_name"], now=timezone.now()
        )
    except (Conflict, Invalid) as error:
        form.add_error("token_name", told(error))
        return access_page(request, member, status=400, token_form=form)
    context = {"text": made.text, "token": made.token, "ours": ours(member)}
    return show(request, member, "console/access/created_token.html", context)


@require_http_methods(["GET", "POST"])
@for_members
@allowed(Permission.WRITE_ACCESS)
@confirmed
def revoke(request: HttpRequest, member: Member, token_id: uuid.UUID) -> HttpResponse:
    token = _found(member, token_id)
    if request.method == "GET":
        return show(request, member, "console/access/revoke_token.html", {"token": token})
    revoke_scim_token(actor=member.actor, token_id=token_id, now=timezone.now())
    toast(request, gettext("%(name)s is revoked: it opens nothing.") % {"name": token.name})
    return redirect("console:access")


def _found(member: Member, token_id: uuid.UUID) -> ScimTokenView:
    for token in list_scim_tokens(actor=member.actor):
        if token.id == token_id:
            return token
    raise Http404

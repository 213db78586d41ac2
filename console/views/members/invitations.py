"""Invitations: list, creation, sending again, revocation."""

import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_url
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.members.presenters import ROLE_NAMES, STATE_NAMES, role_choices
from console.views.members.tabs import tabs
from tenants.base.errors import Conflict, InvalidValue, LimitReached
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission, Role
from tenants.identity.invitations.allowance import get_allowance
from tenants.identity.invitations.email import send_invitation
from tenants.identity.invitations.operations import create_invitation, revoke_invitation
from tenants.identity.invitations.queries import (
    InvitationState,
    InvitationView,
    find_invitation,
    page_of_invitations,
)
from tenants.security.authorization.actor import Actor

_POWERFUL: Final = frozenset({Role.OWNER, Role.ADMINISTRATOR})  # inviting to these: step-up
_TONES: Final = {InvitationState.OPEN: "busy", InvitationState.ACCEPTED: "good"}


class InviteForm(forms.Form):
    email = forms.EmailField(
        label=_("Address"),
        max_length=254,
        widget=forms.EmailInput({"autocomplete": "off", "autofocus": True}),
        help_text=_(
            "We e-mail a link to this address. The link works once and expires after seven days."
        ),
    )
    role = forms.ChoiceField(
        label=_("Role"), initial=Role.DEVELOPER.value, widget=forms.RadioSelect
    )

    def __init__(self, *args: Any, choices: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        role = self.fields["role"]
        assert isinstance(role, forms.ChoiceField)
        role.choices = choices


@dataclass(frozen=True, slots=True)
class InvitationRow:
    invitation: InvitationView
    role_name: str
    state_name: str
    tone: str  # tone of <c-badge>
    can_send: bool
    can_revoke: bool


def _find_invitations(query: ListQuery) -> Page[InvitationRow]:
    page = page_of_invitations(
        actor=query.actor, limit=query.limit, cursor=query.cursor, now=query.now
    )
    return map_page(page, lambda invitation: _present_invitation(query.actor, invitation))


def _present_invitation(actor: Actor, invitation: InvitationView) -> InvitationRow:
    permission = (
        Permission.WRITE_OWNERS if invitation.role is Role.OWNER else Permission.WRITE_MEMBERS
    )
    can_change = actor.has_permission(permission)
    return InvitationRow(
        invitation=invitation,
        role_name=str(ROLE_NAMES[invitation.role]),
        state_name=str(STATE_NAMES[invitation.state]),
        tone=_TONES.get(invitation.state, "off"),
        can_send=invitation.state is not InvitationState.ACCEPTED and can_change,
        can_revoke=invitation.state is InvitationState.OPEN and can_change,
    )


_INVITATIONS: Final = ListPage(
    template="console/members/invitations.html",
    query=_find_invitations,
    context=lambda query, _: {
        "tabs": tabs("members-invitations"),
        "can_invite": query.actor.has_permission(Permission.WRITE_MEMBERS),
    },
    csv=CsvFile(
        "invitations",
        {
            "email": lambda row: row.invitation.email,
            "role": lambda row: row.invitation.role,
            "state": lambda row: row.invitation.state,
            "invited_by": lambda row: row.invitation.invited_by_email,
            "created_at": lambda row: row.invitation.created_at,
            "mailed_at": lambda row: row.invitation.mailed_at,
            "expires_at": lambda row: row.invitation.expires_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_MEMBERS)
def invitations(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _INVITATIONS.render(request, member)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_MEMBERS)
def invite_somebody(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    choices = role_choices(member.actor)
    if request.method == "GET":
        form = InviteForm(choices=choices, initial={"email": request.GET.get("email", "")})
        return _render_page(request, member, form)
    form = InviteForm(request.POST, choices=choices)
    if not form.is_valid():
        return _render_page(request, member, form, status=400)
    role = Role(form.cleaned_data["role"])
    if role in _POWERFUL and (way := step_up_url(request, member)) is not None:
        return way
    try:
        _invite_member(request, member, form.cleaned_data["email"], role)
    except (Conflict, InvalidValue) as error:
        form.add_error("email", translate_error(error))
        return _render_page(request, member, form, status=400)
    except LimitReached as error:
        form.add_error("email", translate_error(error))
        response = _render_page(request, member, form, status=429)
        response["Retry-After"] = str(error.retry_after_s)
        return response
    return redirect("console:members-invitations")


@require_POST
@member_required
@permission_required(Permission.WRITE_MEMBERS)
def send_again(
    request: HttpRequest, member: CurrentMember, invitation_id: uuid.UUID
) -> HttpResponse:
    """Replace the invitation by a new one. The old link stops working."""
    invitation = find_invitation(
        actor=member.actor, invitation_id=invitation_id, now=timezone.now()
    )
    if invitation.role in _POWERFUL and (way := step_up_url(request, member)) is not None:
        return way
    try:
        _invite_member(request, member, invitation.email, invitation.role)
    except (Conflict, LimitReached) as error:
        messages.error(request, translate_error(error))
    return redirect("console:members-invitations")


@require_POST
@member_required
@permission_required(Permission.WRITE_MEMBERS)
def revoke(request: HttpRequest, member: CurrentMember, invitation_id: uuid.UUID) -> HttpResponse:
    invitation = find_invitation(
        actor=member.actor, invitation_id=invitation_id, now=timezone.now()
    )
    revoke_invitation(actor=member.actor, invitation_id=invitation_id, now=timezone.now())
    text = gettext("Invitation for %(email)s revoked. Its link no longer works.")
    toast(request, text % {"email": invitation.email})
    return redirect("console:members-invitations")


def _invite_member(request: HttpRequest, member: CurrentMember, email: str, role: Role) -> None:
    """Invite by mail. Raises Conflict, Forbidden, InvalidValue, LimitReached."""
    invitation = create_invitation(
        actor=member.actor,
        email=email,
        role=role,
        mailer=partial(send_invitation, tenant_name=member.tenant.name),
        now=timezone.now(),
    )
    if invitation.mailed_at is None:
        text = gettext(
            "Invitation for %(email)s created, but we could not send the e-mail. Resend it later."
        )
        messages.warning(request, text % {"email": invitation.email})
    else:
        toast(request, gettext("Invitation sent to %(email)s.") % {"email": invitation.email})


def _render_page(
    request: HttpRequest, member: CurrentMember, form: InviteForm, status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "allowance": get_allowance(actor=member.actor, now=timezone.now()),
    }
    return render_page(request, member, "console/members/invite.html", context, status=status)

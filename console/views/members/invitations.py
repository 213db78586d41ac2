"""The list of invitations, and the actions that create, send again and revoke invitations."""

import re
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
from console.layout.step_up import step_up_redirect
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.texts.labels import ROLE_LABELS
from console.views.members.presenters import STATE_NAMES, list_role_choices
from console.views.members.tabs import tabs
from tenants.base.errors import Conflict, DomainError, InvalidValue, LimitReached, NotFound
from tenants.base.pagination import MAX_PAGE, Page, map_page
from tenants.base.permissions import Permission, Role
from tenants.identity.invitations.allowance import get_allowance
from tenants.identity.invitations.email import send_invitation
from tenants.identity.invitations.operations import create_invitation, revoke_invitation
from tenants.identity.invitations.queries import (
    InvitationState,
    InvitationView,
    find_invitation,
    read_page_of_invitations,
)
from tenants.identity.teams.search import TeamFilter, find_teams
from tenants.security.authorization.actor import Actor

# An invitation with one of these roles requires a step-up, that is, a recent authentication.
_ROLES_WITH_STEP_UP: Final = frozenset({Role.OWNER, Role.ADMINISTRATOR})
MAX_ADDRESSES: Final = 200  # in one form. The tenant's daily limit, 50 by default, may be higher.
_MAX_ADDRESSES_CHARS: Final = 30_000  # 150 for each of MAX_ADDRESSES
# Kinds of the state's <c-badge>. The other states have "off".
_TONES: Final = {InvitationState.OPEN: "busy", InvitationState.ACCEPTED: "good"}


class InviteForm(forms.Form):
    emails = forms.CharField(
        label=_("Addresses"),
        max_length=_MAX_ADDRESSES_CHARS,
        widget=forms.Textarea(
            {"rows": 4, "autocomplete": "off", "autofocus": True, "spellcheck": "false"}
        ),
        help_text=_(
            "One or more, separated by commas, spaces or line breaks. We e-mail a link to each "
            "address. The link works once and expires after seven days."
        ),
    )
    role = forms.ChoiceField(
        label=_("Role"), initial=Role.DEVELOPER.value, widget=forms.RadioSelect
    )
    team = forms.TypedChoiceField(
        label=_("Team"), required=False, coerce=uuid.UUID, empty_value=None
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        role, team = self.fields["role"], self.fields["team"]
        assert isinstance(role, forms.ChoiceField)
        assert isinstance(team, forms.TypedChoiceField)
        role.choices = list_role_choices(actor)
        if actor.has_permission(Permission.WRITE_TEAMS):
            teams = find_teams(actor=actor, team_filter=TeamFilter(), limit=MAX_PAGE, cursor=None)
            team.choices = [
                ("", gettext("No team")),
                *((str(row.id), row.name) for row in teams.rows),
            ]
        else:
            del self.fields["team"]

    def clean_emails(self) -> list[str]:
        emails = _parse_addresses(self.cleaned_data["emails"])
        if not 1 <= len(emails) <= MAX_ADDRESSES:
            raise forms.ValidationError(
                gettext("Enter 1 to %(max)d addresses.") % {"max": MAX_ADDRESSES}
            )
        return emails


def _parse_addresses(text: str) -> list[str]:
    """Return the distinct e-mail addresses of a text in lower case, in their order.

    Commas, semicolons, line breaks and spaces separate addresses. A name may stand before an
    address in angle brackets, as in `Ada Lovelace <ada@example.com>`.
    """
    addresses: dict[str, None] = {}
    for part in re.split(r"[,;\n]", text):
        # In a part with angle brackets, an address is in brackets or contains "@". Other words are
        # names, which are left out.
        words = re.findall(r"<[^<>]*>|[^\s<>]*@[^\s<>]*", part) if "<" in part else part.split()
        for email in words:
            addresses[email.strip("<> ").lower()] = None
    return [email for email in addresses if email]


@dataclass(frozen=True, slots=True)
class InvitationRow:
    invitation: InvitationView
    role_name: str
    state_name: str
    tone: str  # kind of the state's <c-badge>
    can_send: bool
    can_revoke: bool


def _find_invitations(query: ListQuery) -> Page[InvitationRow]:
    page = read_page_of_invitations(
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
        role_name=str(ROLE_LABELS[invitation.role]),
        state_name=str(STATE_NAMES[invitation.state]),
        tone=_TONES.get(invitation.state, "off"),
        can_send=invitation.state is not InvitationState.ACCEPTED and can_change,
        can_revoke=invitation.state is InvitationState.OPEN and can_change,
    )


_INVITATIONS: Final = ListPage(
    template="console/members/invitations.html",
    query=_find_invitations,
    context=lambda query, _page: {
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
def invite_members(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if request.method == "GET":
        initial = {"emails": request.GET.get("email", "")}
        return _render_page(request, member, InviteForm(actor=member.actor, initial=initial))
    form = InviteForm(request.POST, actor=member.actor)
    if not form.is_valid():
        return _render_page(request, member, form, status=400)
    role = Role(form.cleaned_data["role"])
    if role in _ROLES_WITH_STEP_UP and (step_up := step_up_redirect(request, member)) is not None:
        return step_up
    emails, team_id = form.cleaned_data["emails"], form.cleaned_data.get("team")
    results = [_invite_address(member, email, role, team_id) for email in emails]
    if any(result.error is not None for result in results):
        return _show_results(request, member, form, results)
    if len(results) == 1 and results[0].invitation is not None:
        _report_invitation(request, results[0].invitation)
    else:
        _report_invitations(request, results)
    return redirect("console:members-invitations")


@dataclass(frozen=True, slots=True)
class InvitationResult:
    """The result for one e-mail address. Either `invitation` or `error` is set."""

    email: str
    invitation: InvitationView | None = None
    error: DomainError | None = None

    @property
    def message(self) -> str:
        if self.error is not None:
            return translate_error(self.error)
        assert self.invitation is not None
        return gettext("Not sent yet") if self.invitation.mailed_at is None else gettext("Invited")


def _invite_address(
    member: CurrentMember, email: str, role: Role, team_id: uuid.UUID | None
) -> InvitationResult:
    """Create the invitation and e-mail it. Errors are in the result."""
    try:
        invitation = create_invitation(
            actor=member.actor,
            email=email,
            role=role,
            team_id=team_id,
            mailer=partial(send_invitation, tenant_name=member.tenant.name),
            now=timezone.now(),
        )
    except (Conflict, InvalidValue, LimitReached, NotFound) as error:
        return InvitationResult(email, error=error)
    return InvitationResult(email, invitation)


def _show_results(
    request: HttpRequest,
    member: CurrentMember,
    form: InviteForm,
    results: list[InvitationResult],
) -> HttpResponse:
    """Show the result for each address. The form keeps only the addresses that failed."""
    failed = [result for result in results if result.error is not None]
    limit_errors = [result.error for result in failed if isinstance(result.error, LimitReached)]
    form_data = {name: form.data.get(name, "") for name in form.fields}
    form_data["emails"] = "\n".join(result.email for result in failed)
    new_form = InviteForm(form_data, actor=member.actor)
    new_form.full_clean()  # now, because a later validation would discard the error added below
    if len(results) == 1:  # the form shows the error, and there is no list of results
        new_form.add_error("emails", results[0].message)
    num_created = len(results) - len(failed)
    status = 200 if num_created else (429 if limit_errors else 400)
    extra_context = {"results": results if len(results) > 1 else [], "num_created": num_created}
    response = _render_page(request, member, new_form, extra_context, status=status)
    if status == 429:
        response["Retry-After"] = str(max(error.retry_after_s for error in limit_errors))
    return response


def _report_invitations(request: HttpRequest, results: list[InvitationResult]) -> None:
    unsent = [
        result.email
        for result in results
        if result.invitation is not None and result.invitation.mailed_at is None
    ]
    if unsent:
        text = gettext(
            "Invitations created, but we could not send the e-mail to %(emails)s. Resend it later."
        )
        messages.warning(request, text % {"emails": ", ".join(unsent)})
    else:
        toast(request, gettext("%(count)d invitations sent.") % {"count": len(results)})


@require_POST
@member_required
@permission_required(Permission.WRITE_MEMBERS)
def send_again(
    request: HttpRequest, member: CurrentMember, invitation_id: uuid.UUID
) -> HttpResponse:
    """Replace the invitation by a new one. The link of the old invitation stops working."""
    invitation = find_invitation(
        actor=member.actor, invitation_id=invitation_id, now=timezone.now()
    )
    if (
        invitation.role in _ROLES_WITH_STEP_UP
        and (step_up := step_up_redirect(request, member)) is not None
    ):
        return step_up
    result = _invite_address(member, invitation.email, invitation.role, invitation.team_id)
    if result.invitation is None:
        messages.error(request, result.message)
    else:
        _report_invitation(request, result.invitation)
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


def _report_invitation(request: HttpRequest, invitation: InvitationView) -> None:
    if invitation.mailed_at is None:
        text = gettext(
            "Invitation for %(email)s created, but we could not send the e-mail. Resend it later."
        )
        messages.warning(request, text % {"email": invitation.email})
    else:
        toast(request, gettext("Invitation sent to %(email)s.") % {"email": invitation.email})


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    form: InviteForm,
    extra_context: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "allowance": get_allowance(actor=member.actor, now=timezone.now()),
        **(extra_context or {}),
    }
    return render_page(request, member, "console/members/invite.html", context, status=status)

"""The page of one member, and the forms that change the role and remove the member."""

import uuid
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from caret.foundation.ids import UserId
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_redirect
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.texts.labels import ROLE_LABELS
from console.views.keys.presenters import KeyLine, key_lines
from console.views.members.presenters import (
    ROLE_DESCRIPTIONS,
    list_role_choices,
    name_sign_in_methods,
)
from console.views.members.transfer_ownership import can_transfer
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Permission, Role
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.identity.api_keys.queries import KeySummary
from tenants.identity.api_keys.search import KeyFilter, find_keys
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.identity.members.directory import build_directory_rows
from tenants.identity.members.queries import find_member
from tenants.privacy.consent.queries import get_user_consent
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow

_MAX_KEYS: Final = 10  # shown on the page; a link leads to all keys of the member


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), widget=forms.RadioSelect)
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=MAX_REASON_CHARS,
        help_text=_("Recorded in the audit log."),
        widget=forms.TextInput({"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, choices: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        role = self.fields["role"]
        assert isinstance(role, forms.ChoiceField)
        role.choices = choices


@require_GET
@member_required
def show_member(request: HttpRequest, member: CurrentMember, user_id: uuid.UUID) -> HttpResponse:
    actor = member.actor
    shown_member = find_member(actor=member.actor, user_id=UserId(str(user_id)))
    [row] = build_directory_rows(actor.tenant_id, [shown_member])
    context = {
        "row": row,
        "name": row.name or row.email,
        "role_name": ROLE_LABELS[row.role],
        "role_lead": ROLE_DESCRIPTIONS[row.role],
        "sign_in_methods": name_sign_in_methods(row.signs_in_by),
        "key_lines": _list_key_lines(actor, row.user_id),
        "consent": get_user_consent(actor=actor, user_id=row.user_id)
        if actor.has_permission(Permission.READ_CONSENT)
        else None,
        "is_oneself": row.user_id == actor.user_id,
        "can_change": _can_change(actor, shown_member),
        "can_remove": _can_remove(actor, shown_member),
        "can_transfer": can_transfer(actor, shown_member),
        "can_read_overrides": actor.has_permission(Permission.READ_OVERRIDES),
        "reads_audit": actor.has_permission(Permission.READ_AUDIT),
        "can_export_data": actor.has_permission(Permission.EXPORT_DATA_SUBJECTS),
    }
    return render_page(request, member, "console/members/detail.html", context)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_MEMBERS)
def edit_role(request: HttpRequest, member: CurrentMember, user_id: uuid.UUID) -> HttpResponse:
    target = find_member(actor=member.actor, user_id=UserId(str(user_id)))
    if not _can_change(member.actor, target):
        raise PermissionDenied
    if (step_up := step_up_redirect(request, member)) is not None:
        return step_up
    choices = list_role_choices(member.actor)
    if request.method == "GET":
        form = RoleForm(choices=choices, initial={"role": target.role.value})
        return _role_page(request, member, target, form)
    form = RoleForm(_read_role_form(request), choices=choices)
    if not form.is_valid() or not _change_role(request, member, target, form):
        return _role_page(request, member, target, form, status=400)
    return redirect("console:members-member", user_id=user_id)


@require_http_methods(["GET", "POST"])
@member_required
def remove(request: HttpRequest, member: CurrentMember, user_id: uuid.UUID) -> HttpResponse:
    target = find_member(actor=member.actor, user_id=UserId(str(user_id)))
    if not _can_remove(member.actor, target):
        raise PermissionDenied
    if (step_up := step_up_redirect(request, member)) is not None:
        return step_up
    context: dict[str, Any] = {
        "target": target,
        "name": target.name or target.email,
        "is_oneself": target.user_id == member.actor.user_id,
        "max_reason_chars": MAX_REASON_CHARS,
    }
    if request.method == "GET":
        return render_page(request, member, "console/members/remove.html", context)
    # A long or unstorable reason must not prevent a removal. Postgres cannot store NUL.
    reason = request.POST.get("reason", "").replace("\0", "")[:MAX_REASON_CHARS]
    try:
        unowned_keys = remove_member(
            actor=member.actor, user_id=target.user_id, reason=reason, now=timezone.now()
        )
    except Conflict as error:
        context["error"] = translate_error(error)
        return render_page(request, member, "console/members/remove.html", context, status=400)
    if context["is_oneself"]:
        message = gettext("You left %(tenant)s. Gateways reject your keys within a second.")
        toast(request, message % {"tenant": member.tenant.name})
        if unowned_keys.total:
            messages.warning(request, _build_leaving_warning(unowned_keys.total))
        return redirect("console:overview")
    message = gettext(
        "%(name)s is no longer a member. Gateways reject this person’s own keys within a second."
    )
    toast(request, message % {"name": context["name"]})
    _warn_about_unowned_keys(request, unowned_keys)
    return redirect("console:members")


def _build_leaving_warning(num_keys: int) -> str:
    """Return the warning for a member who left. Former members cannot rotate or revoke keys."""
    text = ngettext(
        "%(num)d service key whose secret you know still works. Ask an administrator to rotate or "
        "revoke it.",
        "%(num)d service keys whose secrets you know still work. Ask an administrator to rotate or "
        "revoke them.",
        num_keys,
    )
    return text % {"num": num_keys}


def _read_role_form(request: HttpRequest) -> Any:
    """Return the submitted fields.

    An undo button has no form. Its URL contains the role in the query parameter `to`.
    """
    return {"role": request.GET["to"]} if "to" in request.GET else request.POST


def _change_role(
    request: HttpRequest, member: CurrentMember, target: MemberRow, form: RoleForm
) -> bool:
    """Change the role. If that fails, add the error to the form and return False."""
    try:
        change = change_role(
            actor=member.actor,
            user_id=target.user_id,
            role=Role(form.cleaned_data["role"]),
            reason=form.cleaned_data["reason"],
            now=timezone.now(),
        )
    except (Conflict, Forbidden, InvalidValue) as error:
        form.add_error("role", translate_error(error))
        return False
    text = gettext("%(name)s now has the role %(role)s.")
    names = {"name": target.name or target.email, "role": ROLE_LABELS[change.member.role]}
    edit_url = reverse("console:members-role", args=[target.user_id])
    # `target` was read before the change, so it has the previous role.
    toast(request, text % names, undo_url=f"{edit_url}?to={target.role}")
    _warn_about_unowned_keys(request, change.unowned_keys)
    return True


def _warn_about_unowned_keys(request: HttpRequest, unowned_keys: KeySummary) -> None:
    if unowned_keys.total:
        text = ngettext(
            "%(num)d service key whose secret this person knows still works. Rotate or revoke it.",
            "%(num)d service keys whose secrets this person knows still work. Rotate or revoke "
            "them.",
            unowned_keys.total,
        )
        messages.warning(request, text % {"num": unowned_keys.total})


def _list_key_lines(actor: Actor, user_id: UserId) -> list[KeyLine]:
    """Return the keys that the member owns; none if the actor may not see keys."""
    if not actor.has_permission(Permission.READ_KEYS):
        return []
    key_filter = KeyFilter(owner_id=user_id)
    page = find_keys(
        actor=actor, key_filter=key_filter, limit=_MAX_KEYS, cursor=None, now=timezone.now()
    )
    return key_lines(actor, page.rows)


def _can_change(actor: Actor, target: MemberRow) -> bool:
    if target.role is Role.OWNER and not actor.has_permission(Permission.WRITE_OWNERS):
        return False
    return actor.has_permission(Permission.WRITE_MEMBERS)


def _can_remove(actor: Actor, target: MemberRow) -> bool:
    if target.user_id == actor.user_id:
        return not actor.is_closing  # members of a tenant that is closing cannot leave
    return _can_change(actor, target)


def _role_page(
    request: HttpRequest,
    member: CurrentMember,
    target: MemberRow,
    form: RoleForm,
    status: int = 200,
) -> HttpResponse:
    context = {"form": form, "target": target, "name": target.name or target.email}
    return render_page(request, member, "console/members/edit_role.html", context, status=status)

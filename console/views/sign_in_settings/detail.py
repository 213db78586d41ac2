"""The page of sign-in settings.

Its actions require a second factor or make it optional, and set the roles of SCIM groups.
"""

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.views.sign_in_settings.presenters import render_settings_page
from tenants.base.permissions import Permission, Role
from tenants.identity.scim.groups import set_group_role
from tenants.identity.sso.operations import set_second_factor_required


@require_GET
@member_required
@permission_required(Permission.READ_SIGN_IN_SETTINGS)
def show_settings(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return render_settings_page(request, member)


@require_POST
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def make_factor_required(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    set_second_factor_required(actor=member.actor, is_required=True, now=timezone.now())
    text = gettext(
        "Two-factor authentication is now required for all members who sign in with a password."
    )
    toast(request, text, undo_url=reverse("console:access-make-factor-optional"))
    return redirect("console:access")


@require_POST
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def make_factor_optional(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    rules = set_second_factor_required(actor=member.actor, is_required=False, now=timezone.now())
    text = (
        gettext("Requirement removed. The policy still requires two-factor authentication.")
        if rules.is_mfa_required_by_policy
        else gettext("Two-factor authentication is now optional.")
    )
    toast(request, text, undo_url=reverse("console:access-require-factor"))
    return redirect("console:access")


@require_POST
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def change_group_role(
    request: HttpRequest, member: CurrentMember, group_id: uuid.UUID
) -> HttpResponse:
    """Set the role that a SCIM group gives its members. An empty `role` means no role."""
    role_name = request.POST.get("role", "")
    try:
        role = Role(role_name) if role_name else None
    except ValueError as error:
        raise Http404 from error
    set_group_role(actor=member.actor, group_id=group_id, role=role, now=timezone.now())
    toast(request, gettext("Group role saved. It applies to all members of the group."))
    return redirect("console:access")

"""The page itself, second factors, and what groups make of their members."""

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from console.current_member import Member, for_members
from console.layout.permission_required import allowed
from console.layout.step_up import confirmed
from console.layout.toasts import toast
from console.views.sign_in_settings.presenters import access_page
from tenants.base.permissions import Permission, Role
from tenants.identity.scim.groups import set_group_role
from tenants.identity.sso.operations import require_second_factor


@require_GET
@for_members
@allowed(Permission.READ_ACCESS)
def access(request: HttpRequest, member: Member) -> HttpResponse:
    return access_page(request, member)


@require_POST
@for_members
@allowed(Permission.WRITE_ACCESS)
@confirmed
def require_factor(request: HttpRequest, member: Member) -> HttpResponse:
    require_second_factor(actor=member.actor, required=True, now=timezone.now())
    text = gettext("Who signs in by a password needs a second factor from now on.")
    toast(request, text, undo_url=reverse("console:access-free-factor"))
    return redirect("console:access")


@require_POST
@for_members
@allowed(Permission.WRITE_ACCESS)
@confirmed
def free_factor(request: HttpRequest, member: Member) -> HttpResponse:
    require_second_factor(actor=member.actor, required=False, now=timezone.now())
    text = gettext("A password alone signs people in again.")
    toast(request, text, undo_url=reverse("console:access-require-factor"))
    return redirect("console:access")


@require_POST
@for_members
@allowed(Permission.WRITE_ACCESS)
@confirmed
def group_role(request: HttpRequest, member: Member, group_id: uuid.UUID) -> HttpResponse:
    asked = request.POST.get("role", "")
    try:
        role = Role(asked) if asked else None
        set_group_role(actor=member.actor, group_id=group_id, role=role, now=timezone.now())
    except ValueError as error:
        raise Http404 from error
    toast(request, gettext("The group’s role is set, and its members have it."))
    return redirect("console:access")

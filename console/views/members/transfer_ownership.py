"""Transfer of the ownership to another member.

Submitting the form requires a step-up, that is, a recent authentication.
"""

import uuid

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from caret.foundation.ids import UserId
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_redirect
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.identity.members.queries import find_member
from tenants.identity.ownership import transfer_ownership
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow


def can_transfer(actor: Actor, new_owner: MemberRow) -> bool:
    return actor.has_permission(Permission.WRITE_OWNERS) and new_owner.user_id != actor.user_id


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_OWNERS)
def transfer(request: HttpRequest, member: CurrentMember, user_id: uuid.UUID) -> HttpResponse:
    new_owner = find_member(actor=member.actor, user_id=UserId(str(user_id)))
    if not can_transfer(member.actor, new_owner):
        raise PermissionDenied
    if request.method == "GET":
        return _show_form(request, member, new_owner)
    if (step_up := step_up_redirect(request, member)) is not None:
        return step_up
    reason = request.POST.get("reason", "")
    try:
        transfer_ownership(
            actor=member.actor, user_id=new_owner.user_id, reason=reason, now=timezone.now()
        )
    except (Conflict, InvalidValue) as error:
        return _show_form(request, member, new_owner, translate_error(error))
    text = gettext("%(name)s is now an owner, and you are an administrator.")
    toast(request, text % {"name": new_owner.name or new_owner.email})
    return redirect("console:members-member", user_id=user_id)


def _show_form(
    request: HttpRequest, member: CurrentMember, new_owner: MemberRow, error: str = ""
) -> HttpResponse:
    context = {
        "new_owner": new_owner,
        "name": new_owner.name or new_owner.email,
        "max_reason_chars": MAX_REASON_CHARS,
        "reason": request.POST.get("reason", ""),
        "error": error,
    }
    page = "console/members/transfer_ownership.html"
    return render_page(request, member, page, context, status=400 if error else 200)

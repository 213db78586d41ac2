"""Revocation of an API key, after a confirmation."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.views.keys.detail import key_or_404
from console.views.keys.presenters import key_line
from tenants.base.permissions import Permission
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.identity.api_keys.operations import revoke_key


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.REVOKE_KEYS)
@step_up_required
def revoke(request: HttpRequest, member: CurrentMember, lookup_id: str) -> HttpResponse:
    key = key_or_404(member, lookup_id)
    if request.method == "GET":
        context = {"line": key_line(member.actor, key), "max_reason_chars": MAX_REASON_CHARS}
        return render_page(request, member, "console/keys/revoke.html", context)
    reason = request.POST.get("reason", "").replace("\0", "")[:MAX_REASON_CHARS]
    revoke_key(actor=member.actor, lookup_id=key.lookup_id, reason=reason, now=timezone.now())
    toast(
        request,
        gettext("%(name)s revoked. Gateways reject it within a second.") % {"name": key.name},
    )
    return redirect("console:keys")

"""Revoking a key, which is asked about first."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from caret.foundation.ids import LookupId
from console.keys_table import key_line
from console.member import Member, for_members
from tenants.errors import NotFound
from tenants.keys.operations import revoke_key
from tenants.keys.queries import find_key
from tenants.members.permissions import Permission
from tenants.texts import MAX_REASON_CHARS


@require_http_methods(["GET", "POST"])
@for_members
def revoke(request: HttpRequest, member: Member, lookup_id: str) -> HttpResponse:
    if not member.actor.may(Permission.REVOKE_KEYS):
        raise PermissionDenied
    answer = _revoked if request.method == "POST" else _asked
    try:
        return answer(request, member, LookupId(lookup_id))
    except NotFound as error:
        raise Http404 from error


def _asked(request: HttpRequest, member: Member, lookup_id: LookupId) -> HttpResponse:
    key = find_key(actor=member.actor, lookup_id=lookup_id, now=timezone.now())
    context = {"member": member, "line": key_line(key, can_revoke=True)}
    return render(request, "console/revoke_key.html", context)


def _revoked(request: HttpRequest, member: Member, lookup_id: LookupId) -> HttpResponse:
    reason = request.POST.get("reason", "").replace("\0", "")[:MAX_REASON_CHARS]
    key = revoke_key(actor=member.actor, lookup_id=lookup_id, reason=reason, now=timezone.now())
    messages.success(request, f"{key.name} is revoked. Gateways refuse it within a second.")
    return redirect("console:overview")

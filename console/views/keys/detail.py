"""The pages of one API key: its scopes, creator, owner and last use, and its revocation."""

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from caret.foundation.ids import LookupId
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.views.keys.presenters import key_line, scope_lines
from console.views.keys.try_key import can_try
from tenants.base.errors import Forbidden, NotFound
from tenants.base.permissions import Permission
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.identity.api_keys.operations import revoke_key
from tenants.identity.api_keys.queries import KeyState, KeyView, find_key
from tenants.identity.api_keys.scopes import list_modes
from tenants.identity.api_keys.unowned import is_unowned


@require_GET
@member_required
def key(request: HttpRequest, member: CurrentMember, lookup_id: str) -> HttpResponse:
    api_key = get_key_or_404(member, lookup_id)
    now = timezone.now()
    context = {
        "line": key_line(member.actor, api_key),
        "scopes": scope_lines(api_key.scopes),
        "was_rotated": api_key.issued_at != api_key.created_at,
        "has_old_text": api_key.previous_ends_at is not None and api_key.previous_ends_at > now,
        "is_unowned": is_unowned(actor=member.actor, lookup_id=api_key.lookup_id, now=now),
        "can_try": api_key.state is KeyState.ACTIVE and can_try(list_modes(api_key.scopes)),
        "target": f"key:{api_key.lookup_id}",  # for the link to the audit log
        "reads_audit": member.actor.has_permission(Permission.READ_AUDIT),
        "sees_only_own": not _sees_all(member),
        "list_url": list_url(member),
    }
    return render_page(request, member, "console/keys/detail.html", context)


def get_key_or_404(member: CurrentMember, lookup_id: str) -> KeyView:
    """Return the key.

    Raises Http404 for an unknown key and for a key that the member may not see. Raises
    PermissionDenied if the member may see no keys at all.
    """
    try:
        return find_key(actor=member.actor, lookup_id=LookupId(lookup_id), now=timezone.now())
    except Forbidden as error:
        raise PermissionDenied from error
    except NotFound as error:
        raise Http404 from error


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.REVOKE_KEYS, Permission.MANAGE_OWN_KEYS)  # one is enough
@step_up_required
def revoke(request: HttpRequest, member: CurrentMember, lookup_id: str) -> HttpResponse:
    api_key = get_key_or_404(member, lookup_id)
    if request.method == "GET":
        context = {"line": key_line(member.actor, api_key), "max_reason_chars": MAX_REASON_CHARS}
        return render_page(request, member, "console/keys/revoke.html", context)
    # A long or unstorable reason must not prevent a revocation. Postgres cannot store NUL.
    reason = request.POST.get("reason", "").replace("\0", "")[:MAX_REASON_CHARS]
    revoke_key(actor=member.actor, lookup_id=api_key.lookup_id, reason=reason, now=timezone.now())
    toast(
        request,
        gettext("%(name)s revoked. Gateways reject it within a second.") % {"name": api_key.name},
    )
    return redirect(list_url(member))


def list_url(member: CurrentMember) -> str:
    """Return the URL of the list of all keys, or of the member's own if they may see no others."""
    return reverse("console:keys" if _sees_all(member) else "console:my-keys")


def _sees_all(member: CurrentMember) -> bool:
    return member.actor.has_permission(Permission.READ_KEYS)

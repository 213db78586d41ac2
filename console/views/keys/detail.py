"""One API key: its scopes, creator, owner and last use."""

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from caret.foundation.ids import LookupId
from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember, member_required
from console.views.keys.presenters import key_line, scope_lines
from tenants.base.errors import Forbidden, NotFound
from tenants.base.permissions import Permission
from tenants.identity.api_keys.queries import KeyView, find_key
from tenants.identity.api_keys.unowned import is_unowned


@require_GET
@member_required
def key(request: HttpRequest, member: CurrentMember, lookup_id: str) -> HttpResponse:
    found = key_or_404(member, lookup_id)
    now = timezone.now()
    context = {
        "line": key_line(member.actor, found),
        "scopes": scope_lines(found.scopes),
        "was_rotated": found.issued_at != found.created_at,
        "has_old_text": found.previous_ends_at is not None and found.previous_ends_at > now,
        "is_unowned": is_unowned(actor=member.actor, lookup_id=found.lookup_id, now=now),
        "target": f"key:{found.lookup_id}",
        "reads_audit": member.actor.has_permission(Permission.READ_AUDIT),
    }
    return render_page(request, member, "console/keys/key.html", context)


def key_or_404(member: CurrentMember, lookup_id: str) -> KeyView:
    """Return the key; answer 404 alike for unknown keys and keys that the member may not see."""
    try:
        return find_key(actor=member.actor, lookup_id=LookupId(lookup_id), now=timezone.now())
    except Forbidden as error:
        raise PermissionDenied from error
    except NotFound as error:
        raise Http404 from error

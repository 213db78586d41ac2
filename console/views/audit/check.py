"""Is the trail whole? Asked here of this installation; offline, of nobody."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from console.member import Member, for_members
from console.shell.allowed import allowed
from console.shell.parts import show
from tenants.audit.check import MAX_ENTRIES, check_trail
from tenants.members.permissions import Permission
from tenants.signing_keys import signing_keys

_PAGE: Final = "console/audit/check.html"


@require_http_methods(["GET", "POST"])
@for_members
@allowed(Permission.READ_AUDIT)
def check(request: HttpRequest, member: Member) -> HttpResponse:
    checked = None
    if request.method == "POST":
        keys = signing_keys().public_keys()
        checked = check_trail(actor=member.actor, keys=keys, now=timezone.now())
    context = {"checked": checked, "max_entries": MAX_ENTRIES}
    return show(request, member, _PAGE, context)

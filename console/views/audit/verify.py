"""Is the trail whole? Asked here of this installation; offline, of nobody."""

from typing import Final

from django import forms
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from console.current_member import Member, for_members
from console.layout.htmx import show
from console.layout.permission_required import allowed
from tenants.base.errors import Conflict, Invalid
from tenants.base.permissions import Permission
from tenants.base.signing_keys import signing_keys
from tenants.security.audit.chain_check import MAX_ENTRIES, check_trail

_PAGE: Final = "console/audit/check.html"


class _AskedForm(forms.Form):
    after = forms.IntegerField(required=False)  # None: the newest


@require_http_methods(["GET", "POST"])
@for_members
@allowed(Permission.READ_AUDIT)
def check(request: HttpRequest, member: Member) -> HttpResponse:
    if request.method == "GET":
        return show(request, member, _PAGE, {})
    keys, form = signing_keys().public_keys(), _AskedForm(request.POST)
    if not form.is_valid():
        raise BadRequest("There is no such entry.")
    try:
        checked = check_trail(
            actor=member.actor, keys=keys, now=timezone.now(), after=form.cleaned_data["after"]
        )
    except Invalid as error:
        raise BadRequest(error.message) from error
    except Conflict:
        return show(request, member, _PAGE, {"is_busy": True}, status=409)
    return show(request, member, _PAGE, {"checked": checked, "max_entries": MAX_ENTRIES})

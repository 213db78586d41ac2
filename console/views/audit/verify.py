"""The verification of the audit log, with this installation's keys. It also works offline."""

from typing import Final

from django import forms
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.base.signatures.signing_keys import signing_keys
from tenants.security.audit.chain_check import MAX_ENTRIES, check_chain

_PAGE: Final = "console/audit/check.html"


class _AskedForm(forms.Form):
    after = forms.IntegerField(required=False)  # None: the newest entries


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.READ_AUDIT)
def check(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if request.method == "GET":
        return render_page(request, member, _PAGE, {})
    keys, form = signing_keys().public_keys(), _AskedForm(request.POST)
    if not form.is_valid():
        raise BadRequest("This entry does not exist.")
    try:
        checked = check_chain(
            actor=member.actor, keys=keys, now=timezone.now(), after=form.cleaned_data["after"]
        )
    except InvalidValue as error:
        raise BadRequest(error.message) from error
    except Conflict:
        return render_page(request, member, _PAGE, {"is_busy": True}, status=409)
    return render_page(request, member, _PAGE, {"checked": checked, "max_entries": MAX_ENTRIES})

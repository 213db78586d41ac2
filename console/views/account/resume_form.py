"""Resuming a form that was stored while its sender reauthenticated."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.pending_form import find_pending_form
from console.sign_in.current_member import CurrentMember, member_required

_PAGE: Final = "console/account/go_on.html"
_GONE: Final = 410


@require_GET
@member_required
def resume(request: HttpRequest, member: CurrentMember, token: str) -> HttpResponse:
    form = find_pending_form(member.actor, token)
    return render_page(request, member, _PAGE, {"form": form}, status=200 if form else _GONE)

"""Carrying on with what somebody sent before he was asked who he is."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.current_member import Member, for_members
from console.layout.htmx import show
from console.layout.pending_form import find_kept_form

_PAGE: Final = "console/account/go_on.html"
_GONE: Final = 410


@require_GET
@for_members
def go_on(request: HttpRequest, member: Member, token: str) -> HttpResponse:
    form = find_kept_form(member.actor, token)
    return show(request, member, _PAGE, {"form": form}, status=200 if form else _GONE)

"""The list of sinks, and how each is doing."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from console.member import Member, for_members
from console.shell.allowed import allowed
from console.shell.lists import turning
from console.shell.parts import show
from console.views.sinks.shown import row_of
from tenants.errors import Invalid
from tenants.members.permissions import Permission
from tenants.siem.queries import list_sinks

_PAGE: Final = "console/sinks/sinks.html"
_LIMIT: Final = 50


@require_GET
@for_members
@allowed(Permission.READ_AUDIT)
def sinks(request: HttpRequest, member: Member) -> HttpResponse:
    try:
        page = list_sinks(
            actor=member.actor, limit=_LIMIT, cursor=request.GET.get("cursor") or None
        )
    except Invalid:  # a cursor that is none
        return redirect("console:sinks")
    context = {
        "rows": [row_of(sink) for sink in page.rows],
        "turning": turning(request, page),
        "can_push": member.actor.may(Permission.PUSH_AUDIT),
    }
    return show(request, member, _PAGE, context)

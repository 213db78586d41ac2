"""The list of sinks, and how each is doing."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from console.current_member import Member, for_members
from console.layout.csv_response import Gathered, csv_answer, first_rows, notes_of
from console.layout.htmx import show
from console.layout.pagination import turning, wants_file
from console.layout.permission_required import allowed
from console.views.audit_sinks.presenters import row_of
from tenants.base.errors import Invalid
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.compliance.audit_sinks.queries import SinkView, list_sinks

_PAGE: Final = "console/sinks/sinks.html"
_LIMIT: Final = 50


@require_GET
@for_members
@allowed(Permission.READ_AUDIT)
def sinks(request: HttpRequest, member: Member) -> HttpResponse:
    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[SinkView]:
        return list_sinks(actor=member.actor, limit=limit, cursor=cursor)

    if wants_file(request):
        return _file(first_rows(page_after))
    try:
        page = page_after(request.GET.get("cursor") or None, _LIMIT)
    except Invalid:  # a cursor that is none
        return redirect("console:sinks")
    context = {
        "rows": [row_of(sink) for sink in page.rows],
        "turning": turning(request, page, has_file=True),
        "can_push": member.actor.may(Permission.PUSH_AUDIT),
    }
    return show(request, member, _PAGE, context)


def _file(found: Gathered[SinkView]) -> HttpResponse:
    """Addresses without what may be a secret in them, as on the page."""
    header = (
        *("name", "kind", "origin", "delivered_sequence", "waiting"),
        *("delivered_at", "failed_since", "created_at"),
    )
    rows = [
        (
            *(each.name, each.kind, each.origin, each.delivered_sequence, each.num_waiting),
            *(each.delivered_at, each.failed_since, each.created_at),
        )
        for each in found.rows
    ]
    return csv_answer("sinks", header, rows, notes=notes_of(found))

"""The list of audit sinks with their states."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.lists.csv_response import CsvRows, collect_rows, csv_response, notes_of
from console.layout.lists.pagination import page_links, wants_csv
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.audit_sinks.presenters import row_of
from tenants.base.errors import InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.compliance.audit_sinks.queries import SinkView, list_sinks

_PAGE: Final = "console/sinks/sinks.html"
_LIMIT: Final = 50


@require_GET
@member_required
@permission_required(Permission.READ_AUDIT)
def sinks(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[SinkView]:
        return list_sinks(actor=member.actor, limit=limit, cursor=cursor)

    if wants_csv(request):
        return _file(collect_rows(page_after))
    try:
        page = page_after(request.GET.get("cursor") or None, _LIMIT)
    except InvalidValue:  # an invalid cursor
        return redirect("console:sinks")
    context = {
        "rows": [row_of(sink) for sink in page.rows],
        "turning": page_links(request, page, has_file=True),
        "can_push": member.actor.has_permission(Permission.WRITE_AUDIT_SINKS),
    }
    return render_page(request, member, _PAGE, context)


def _file(found: CsvRows[SinkView]) -> HttpResponse:
    """Return the sinks as CSV. As on the page, addresses omit the parts that may be secret."""
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
    return csv_response("sinks", header, rows, notes=notes_of(found))

"""The list of audit sinks with their states."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.audit_sinks.presenters import SinkRow, row_of
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.compliance.audit_sinks.queries import list_sinks


def _find_sinks(asked: ListQuery) -> Page[SinkRow]:
    page = list_sinks(actor=asked.actor, limit=asked.limit, cursor=asked.cursor)
    return map_page(page, row_of)


_SINKS: Final = ListPage(
    template="console/sinks/sinks.html",
    query=_find_sinks,
    page_rows=50,
    context=lambda asked, _: {"can_push": asked.actor.has_permission(Permission.WRITE_AUDIT_SINKS)},
    # As on the page, addresses omit the parts that may be secret.
    csv=CsvFile(
        "sinks",
        {
            "name": lambda row: row.sink.name,
            "kind": lambda row: row.sink.kind,
            "origin": lambda row: row.sink.origin,
            "delivered_sequence": lambda row: row.sink.delivered_sequence,
            "waiting": lambda row: row.sink.num_waiting,
            "delivered_at": lambda row: row.sink.delivered_at,
            "failed_since": lambda row: row.sink.failed_since,
            "created_at": lambda row: row.sink.created_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_AUDIT)
def sinks(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _SINKS.render(request, member)

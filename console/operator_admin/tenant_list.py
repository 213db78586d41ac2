"""The directory of tenants, the start page for operators' work on tenants."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.layout.lists.csv_response import CsvRows, collect_rows, csv_response, notes_of
from console.layout.lists.pagination import wants_csv
from console.operator_admin.site import operator_required, page
from tenants.base.errors import InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.operators.queries import TenantDirectoryRow, list_directory

PAGE_ROWS: Final = 50


@require_GET
@operator_required
def directory(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    search = request.GET.get("search", "").strip().lower()

    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[TenantDirectoryRow]:
        return list_directory(search=search, limit=limit, cursor=cursor)

    if wants_csv(request):
        return _csv_response(collect_rows(page_after))
    try:
        found = page_after(request.GET.get("cursor") or None, PAGE_ROWS)
    except InvalidValue:  # an invalid cursor: show the first page
        found = page_after(None, PAGE_ROWS)
    context = {
        "title": gettext("Tenants"),
        "search": search,
        "table": _table_context(found),
        "next_cursor": found.next_cursor,
    }
    return page(request, "directory.html", context)


def _table_context(found: Page[TenantDirectoryRow]) -> dict[str, Any]:
    """Return the table in the format of unfold's component."""
    return {
        "headers": [
            gettext("Tenant"),
            gettext("Name"),
            gettext("Status"),
            gettext("Region"),
            gettext("Since"),
        ],
        "rows": [_csv_line(row) for row in found.rows],
    }


def _csv_response(found: CsvRows[TenantDirectoryRow]) -> HttpResponse:
    header = ("tenant", "name", "status", "region", "created_at", "id")
    rows = [
        (row.slug, row.name, row.status, row.region, row.created_at, row.tenant_id)
        for row in found.rows
    ]
    return csv_response("tenants", header, rows, notes=notes_of(found))


def _csv_line(row: TenantDirectoryRow) -> list[Any]:
    link = format_html(
        '<a class="operators-link" href="{}">{}</a>',
        reverse("operators:tenant", args=[row.tenant_id]),
        row.slug,
    )
    return [link, row.name, row.status.value, row.region, f"{row.created_at:%Y-%m-%d}"]

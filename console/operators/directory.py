"""The directory of tenants: where operators begin."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.operators.site import for_operators, page
from tenants.errors import Invalid
from tenants.operators.accounts import OperatorView
from tenants.operators.queries import DirectoryRow, list_directory
from tenants.paging import Page

PAGE_ROWS: Final = 50


@require_GET
@for_operators
def directory(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    search = request.GET.get("search", "").strip().lower()
    try:
        found = list_directory(
            search=search, limit=PAGE_ROWS, cursor=request.GET.get("cursor") or None
        )
    except Invalid:  # a cursor that is none of ours: the first page
        found = list_directory(search=search, limit=PAGE_ROWS, cursor=None)
    context = {
        "title": gettext("Tenants"),
        "search": search,
        "table": _table(found),
        "next_cursor": found.next_cursor,
    }
    return page(request, "directory.html", context)


def _table(found: Page[DirectoryRow]) -> dict[str, Any]:
    """As unfold's component draws it."""
    return {
        "headers": [
            gettext("Tenant"),
            gettext("Name"),
            gettext("Status"),
            gettext("Region"),
            gettext("Since"),
        ],
        "rows": [_line(row) for row in found.rows],
    }


def _line(row: DirectoryRow) -> list[Any]:
    link = format_html(
        '<a class="operators-link" href="{}">{}</a>',
        reverse("operators:tenant", args=[row.tenant_id]),
        row.slug,
    )
    return [link, row.name, row.status.value, row.region, f"{row.created_at:%Y-%m-%d}"]

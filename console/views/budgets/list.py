"""The list of budgets with their spending."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.lists.csv_response import CsvRows, collect_rows, csv_response, notes_of
from console.layout.lists.pagination import page_links, wants_csv
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.budgets.presenters import present_budget
from tenants.base.errors import InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.billing.budgets.queries import BudgetView, page_of_budgets

_PAGE: Final = "console/budgets/budgets.html"
_LIMIT: Final = 50


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def budgets(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[BudgetView]:
        return page_of_budgets(actor=member.actor, limit=limit, cursor=cursor, now=timezone.now())

    if wants_csv(request):
        return _file(collect_rows(page_after))
    try:
        page = page_after(request.GET.get("cursor") or None, _LIMIT)
    except InvalidValue:  # an invalid cursor
        return redirect("console:budgets")
    context: dict[str, Any] = {
        "rows": [(present_budget(each, each.currency), each) for each in page.rows],
        "turning": page_links(request, page, has_file=True),
        "may_write": member.actor.has_permission(Permission.WRITE_BUDGETS),
    }
    return render_page(request, member, _PAGE, context)


def _file(found: CsvRows[BudgetView]) -> HttpResponse:
    header = ("name", "scope", "spent_micros", "limit_micros", "currency", "is_hard", "created_at")
    rows = [
        (
            *(present_budget(each, each.currency).whose, each.scope, each.spent_micros),
            *(each.limit_micros, each.currency, each.is_hard, each.created_at),
        )
        for each in found.rows
    ]
    return csv_response("budgets", header, rows, notes=notes_of(found))

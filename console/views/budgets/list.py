"""The list of budgets, with what is spent of each."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET

from console.current_member import Member, for_members
from console.layout.csv_response import Gathered, csv_answer, first_rows, notes_of
from console.layout.htmx import show
from console.layout.pagination import turning, wants_file
from console.layout.permission_required import allowed
from console.views.budgets.presenters import bar_of
from tenants.base.errors import Invalid
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.billing.budgets.queries import BudgetView, page_of_budgets

_PAGE: Final = "console/budgets/budgets.html"
_LIMIT: Final = 50


@require_GET
@for_members
@allowed(Permission.READ_BILLING)
def budgets(request: HttpRequest, member: Member) -> HttpResponse:
    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[BudgetView]:
        return page_of_budgets(actor=member.actor, limit=limit, cursor=cursor, now=timezone.now())

    if wants_file(request):
        return _file(first_rows(page_after))
    try:
        page = page_after(request.GET.get("cursor") or None, _LIMIT)
    except Invalid:  # a cursor that is none
        return redirect("console:budgets")
    context: dict[str, Any] = {
        "rows": [(bar_of(each, each.currency), each) for each in page.rows],
        "turning": turning(request, page, has_file=True),
        "may_write": member.actor.may(Permission.WRITE_BUDGETS),
    }
    return show(request, member, _PAGE, context)


def _file(found: Gathered[BudgetView]) -> HttpResponse:
    header = ("whose", "scope", "spent_micros", "limit_micros", "currency", "stops", "created_at")
    rows = [
        (
            *(bar_of(each, each.currency).whose, each.scope, each.spent_micros),
            *(each.limit_micros, each.currency, each.is_hard, each.created_at),
        )
        for each in found.rows
    ]
    return csv_answer("budgets", header, rows, notes=notes_of(found))

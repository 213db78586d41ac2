"""The list of budgets with their spending."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.budgets.presenters import BudgetBar, present_budget
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.billing.budgets.queries import BudgetView, page_of_budgets

_BudgetRow = tuple[BudgetBar, BudgetView]


def _find_budgets(asked: ListQuery) -> Page[_BudgetRow]:
    page = page_of_budgets(actor=asked.actor, limit=asked.limit, cursor=asked.cursor, now=asked.now)
    return map_page(page, lambda budget: (present_budget(budget, budget.currency), budget))


_BUDGETS: Final = ListPage(
    template="console/budgets/budgets.html",
    query=_find_budgets,
    page_rows=50,
    context=lambda asked, _: {"may_write": asked.actor.has_permission(Permission.WRITE_BUDGETS)},
    csv=CsvFile(
        "budgets",
        {
            "name": lambda row: row[0].whose,
            "scope": lambda row: row[1].scope,
            "spent_micros": lambda row: row[1].spent_micros,
            "limit_micros": lambda row: row[1].limit_micros,
            "currency": lambda row: row[1].currency,
            "is_hard": lambda row: row[1].is_hard,
            "created_at": lambda row: row[1].created_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def budgets(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _BUDGETS.render(request, member)

"""The list of budgets with their spending, and the page that creates a budget."""

from typing import Final, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from caret.contracts.pricing import BudgetScope
from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.budgets.forms import FIELDS, NewForm
from console.views.budgets.presenters import BudgetBar, present_budget
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import MAX_PAGE, Page, map_page
from tenants.base.permissions import Permission
from tenants.billing.budgets.operations import create_budget
from tenants.billing.budgets.queries import BudgetView, read_page_of_budgets
from tenants.billing.budgets.status_queries import BudgetEffect
from tenants.billing.spending.queries import read_currency
from tenants.identity.teams.queries import read_page_of_teams

_NEW_PAGE: Final = "console/budgets/create.html"
_INITIAL: Final = {"scope": BudgetScope.TENANT.value, "is_hard": True}


class _BudgetRow(NamedTuple):
    bar: BudgetBar
    budget: BudgetView


def _find_budgets(query: ListQuery) -> Page[_BudgetRow]:
    page = read_page_of_budgets(
        actor=query.actor, limit=query.limit, cursor=query.cursor, now=query.now
    )
    return map_page(
        page, lambda budget: _BudgetRow(present_budget(budget, budget.currency), budget)
    )


_BUDGETS: Final = ListPage(
    template="console/budgets/list.html",
    query=_find_budgets,
    page_rows=50,
    context=lambda query, _: {"may_write": query.actor.has_permission(Permission.WRITE_BUDGETS)},
    csv=CsvFile(
        "budgets",
        {
            "name": lambda row: row.bar.holder,
            "scope": lambda row: row.budget.scope,
            "spent_micros": lambda row: row.budget.spent_micros,
            "limit_micros": lambda row: row.budget.month_limit_micros,
            "currency": lambda row: row.budget.currency,
            "is_hard": lambda row: row.budget.is_hard,
            "created_at": lambda row: row.budget.created_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def budgets(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _BUDGETS.render(request, member)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_BUDGETS)
def new(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    currency = read_currency(actor=member.actor)
    # The form offers the newest teams. Budgets of other teams can be created through the API.
    teams = read_page_of_teams(actor=member.actor, limit=MAX_PAGE, cursor=None).rows
    if request.method == "GET":
        form = NewForm(initial=_INITIAL, teams=teams)
        return render_page(request, member, _NEW_PAGE, {"form": form, "currency": currency})
    form = NewForm(request.POST, teams=teams)
    result = _create_budget(member, form) if form.is_valid() else None
    if not isinstance(result, BudgetView):
        context = {"form": form, "currency": currency, "effect": result}
        status = 400 if result is None else 200
        return render_page(request, member, _NEW_PAGE, context, status=status)
    toast(request, gettext("Budget created. It applies immediately."))
    return redirect("console:budgets-budget", result.id)


def _create_budget(member: CurrentMember, form: NewForm) -> BudgetView | BudgetEffect | None:
    """Create the budget, or return the effect that the user must confirm first.

    Returns None, with an error in the form, if the budget is rejected.
    """
    try:
        holder = form.to_holder()
        effect = form.find_unconfirmed_effect(member.actor, holder)
        return effect or create_budget(
            actor=member.actor, holder=holder, terms=form.to_terms(), now=timezone.now()
        )
    except InvalidValue as error:
        field = FIELDS.get(error.field, error.field)
        form.add_error(field if field in form.fields else None, translate_error(error))
    except Conflict as error:
        form.add_error(None, translate_error(error))
    return None

"""Creation of a budget."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from caret.contracts.pricing import BudgetScope
from console.error_messages import translate_error
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.views.budgets.forms import FIELDS, NewForm
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import MAX_PAGE
from tenants.base.permissions import Permission
from tenants.billing.budgets.operations import create_budget
from tenants.billing.budgets.queries import BudgetView
from tenants.billing.spending.queries import read_currency
from tenants.identity.teams.queries import page_of_teams

_PAGE: Final = "console/budgets/new.html"
_INITIAL: Final = {"scope": BudgetScope.TENANT.value, "is_hard": True}


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_BUDGETS)
def new(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    currency = read_currency(actor=member.actor)
    # The newest teams; for others, the API can create budgets.
    teams = page_of_teams(actor=member.actor, limit=MAX_PAGE, cursor=None).rows
    if request.method == "GET":
        form = NewForm(initial=_INITIAL, teams=teams)
        return render_page(request, member, _PAGE, {"form": form, "currency": currency})
    form = NewForm(request.POST, teams=teams)
    made = _create_budget(member, form) if form.is_valid() else None
    if made is None:
        return render_page(request, member, _PAGE, {"form": form, "currency": currency}, status=400)
    toast(request, gettext("Budget created. It applies immediately."))
    return redirect("console:budgets-budget", made.id)


def _create_budget(member: CurrentMember, form: NewForm) -> BudgetView | None:
    try:
        return create_budget(
            actor=member.actor, holder=form.to_target(), terms=form.to_terms(), now=timezone.now()
        )
    except InvalidValue as error:
        field = FIELDS.get(error.field, error.field)
        form.add_error(field if field in form.fields else None, translate_error(error))
    except Conflict as error:
        form.add_error(None, translate_error(error))
    return None

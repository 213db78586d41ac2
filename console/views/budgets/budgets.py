"""The list of budgets, with what is spent of each."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET

from console.member import Member, for_members
from console.shell.allowed import allowed
from console.shell.lists import turning
from console.shell.parts import show
from console.views.budgets.shown import bar_of
from tenants.billing.budgets.queries import page_of_budgets
from tenants.errors import Invalid
from tenants.members.permissions import Permission

_PAGE: Final = "console/budgets/budgets.html"
_LIMIT: Final = 50


@require_GET
@for_members
@allowed(Permission.READ_BILLING)
def budgets(request: HttpRequest, member: Member) -> HttpResponse:
    cursor = request.GET.get("cursor") or None
    try:
        page = page_of_budgets(actor=member.actor, limit=_LIMIT, cursor=cursor, now=timezone.now())
    except Invalid:  # a cursor that is none
        return redirect("console:budgets")
    context: dict[str, Any] = {
        "rows": [(bar_of(each), each) for each in page.rows],
        "turning": turning(request, page),
        "may_write": member.actor.may(Permission.WRITE_BUDGETS),
    }
    return show(request, member, _PAGE, context)

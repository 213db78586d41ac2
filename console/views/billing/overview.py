"""The plan in force, this month so far, what is left of budgets, and what was spent over time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.current_member import Member, for_members
from console.layout.htmx import show
from console.layout.pagination import address_of
from console.layout.permission_required import allowed
from console.views.billing.charts import spent_chart
from console.views.billing.presenters import (
    Spent,
    price_rows,
    spent_by_day,
    spent_by_month,
    used_rows,
)
from console.views.billing.tabs import Tab, tabs
from console.views.budgets.presenters import bar_of
from tenants.base.billing_periods import ONE_DAY, month_of, next_month, utc_day
from tenants.base.permissions import Permission
from tenants.billing.budgets.status_queries import nearest_budgets
from tenants.billing.spending.queries import Account, read_account

_PAGE: Final = "console/billing/account.html"
_PART: Final = "console/billing/_spent.html"
_NUM_BUDGETS: Final = 5  # the list has all


@dataclass(frozen=True, slots=True)
class Span:
    title: Promise
    first: Callable[[date], date]  # from today
    is_by_month: bool = False


def _a_year_before(day: date) -> date:
    """Twelve months, this one included."""
    return next_month(month_of(day).replace(year=day.year - 1))


_SPANS: Final = {
    "30": Span(_("30 days"), lambda day: day - 29 * ONE_DAY),
    "90": Span(_("90 days"), lambda day: day - 89 * ONE_DAY),
    "year": Span(_("12 months"), _a_year_before, is_by_month=True),
}


@require_GET
@for_members
@allowed(Permission.READ_BILLING)
def account(request: HttpRequest, member: Member) -> HttpResponse:
    chosen = request.GET.get("span", "30")
    chosen, now = chosen if chosen in _SPANS else "30", timezone.now()
    first = _SPANS[chosen].first(utc_day(now))
    found = read_account(actor=member.actor, first=first, now=now)
    context: dict[str, Any] = {"tabs": tabs("billing"), "account": found}
    if found is not None:
        context |= _spent_over_time(found, chosen, first) | _this_month(found)
        context |= _budgets(member, found, now)
    return show(request, member, _PAGE, context, part=_PART)


def _this_month(found: Account) -> dict[str, Any]:
    rows = used_rows(found.days, found.month)
    price = None if found.plan is None else found.plan.price
    return {
        "rows": rows,
        "total_micros": sum(row.amount_micros for row in rows),
        "seats_micros": sum(row.amount_micros for row in rows if row.is_seats),
        "tokens_micros": sum(row.amount_micros for row in rows if not row.is_seats),
        "num_tokens": sum(row.quantity for row in rows if not row.is_seats),
        "prices": [] if price is None else price_rows(price),
        "month_of_seats": 0 if price is None else price.seat_month_micros * found.num_seats,
    }


def _spent_over_time(found: Account, chosen: str, first: date) -> dict[str, Any]:
    asked = [each for each in found.days if each.day >= first]
    by = spent_by_month if _SPANS[chosen].is_by_month else spent_by_day
    spent: list[Spent] = by(asked, first, found.today)
    return {
        "chart": spent_chart(spent, found.currency, is_by_month=_SPANS[chosen].is_by_month),
        "spent_micros": sum(each.micros for each in spent),
        "spans": [
            Tab(address_of("billing", span=name), str(span.title), name == chosen)
            for name, span in _SPANS.items()
        ],
    }


def _budgets(member: Member, account: Account, now: datetime) -> dict[str, Any]:
    price = None if account.plan is None else account.plan.price
    found = nearest_budgets(actor=member.actor, limit=_NUM_BUDGETS, price=price, now=now)
    return {
        "budgets": [bar_of(standing, account.currency) for standing in found],
        "may_write": member.actor.may(Permission.WRITE_BUDGETS),
    }

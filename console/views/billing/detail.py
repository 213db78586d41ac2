"""The billing page: plan, current month, budgets that are nearest to their limits, and spending."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.lists.pagination import page_url
from console.layout.permission_required import permission_required
from console.layout.tabs import Tab
from console.sign_in.current_member import CurrentMember, member_required
from console.views.billing.presenters import (
    SpendRow,
    build_price_rows,
    build_spending_chart,
    build_usage_rows,
    sum_by_day,
    sum_by_month,
)
from console.views.billing.tabs import tabs
from console.views.budgets.presenters import present_budget
from tenants.base.billing_periods import ONE_DAY, start_of_month, start_of_next_month, utc_day
from tenants.base.permissions import Permission
from tenants.billing.budgets.status_queries import list_nearest_limit
from tenants.billing.spending.queries import SpendingOverview, read_spending_overview

_PAGE: Final = "console/billing/detail.html"
_PART: Final = "console/billing/_spending.html"  # reloaded by htmx if the period changes
_NUM_BUDGETS: Final = 5  # at most; the page Budgets lists all budgets
_DEFAULT_SPAN: Final = "30"


@dataclass(frozen=True, slots=True)
class SpendingPeriod:
    """A period that ends today. The page shows the tenant's spending in it."""

    title: Promise
    compute_first_day: Callable[[date], date]  # from today
    is_by_month: bool = False  # False: the chart shows each day


def _start_of_twelve_months(day: date) -> date:
    """Return the first day of the twelve months that end with the month of `day`."""
    return start_of_next_month(start_of_month(day).replace(year=day.year - 1))


# By the value of `span` in the URL. Each period includes today.
_SPANS: Final = {
    "30": SpendingPeriod(_("30 days"), lambda day: day - 29 * ONE_DAY),
    "90": SpendingPeriod(_("90 days"), lambda day: day - 89 * ONE_DAY),
    "year": SpendingPeriod(_("12 months"), _start_of_twelve_months, is_by_month=True),
}


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def billing(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    span, now = request.GET.get("span", ""), timezone.now()
    span = span if span in _SPANS else _DEFAULT_SPAN
    first = _SPANS[span].compute_first_day(utc_day(now))
    spending = read_spending_overview(actor=member.actor, first=first, now=now)
    context: dict[str, Any] = {"tabs": tabs("billing"), "spending": spending}
    if spending is not None:  # None: the tenant has no plan
        context |= _spent_over_time(spending, span, first) | _this_month(spending)
        context |= _budgets_context(member, spending, now)
    return render_page(request, member, _PAGE, context, part=_PART)


def _this_month(spending: SpendingOverview) -> dict[str, Any]:
    rows = build_usage_rows(spending.daily_costs, spending.month)
    price = None if spending.plan is None else spending.plan.price
    seat_month_micros = 0 if price is None else price.seat_month_micros
    return {
        "rows": rows,
        "cost": spending.month_cost,
        "num_tokens": sum(row.quantity for row in rows if not row.is_seats),
        "prices": [] if price is None else build_price_rows(price),
        "seats_full_month_micros": seat_month_micros * spending.num_seats,
    }


def _spent_over_time(spending: SpendingOverview, span_name: str, first: date) -> dict[str, Any]:
    """Return the chart and the total since `first`, and the tabs that choose the period."""
    # The overview may also contain earlier days, which the current month's cost needs.
    daily_lines = [line for line in spending.daily_costs if line.day >= first]
    sum_spending = sum_by_month if _SPANS[span_name].is_by_month else sum_by_day
    spend_rows: list[SpendRow] = sum_spending(daily_lines, first, spending.today)
    return {
        "chart": build_spending_chart(
            spend_rows, spending.currency, is_by_month=_SPANS[span_name].is_by_month
        ),
        "spent_micros": sum(row.micros for row in spend_rows),
        "spans": [
            Tab(str(period.title), page_url("billing", span=name), is_current=name == span_name)
            for name, period in _SPANS.items()
        ],
    }


def _budgets_context(
    member: CurrentMember, spending: SpendingOverview, now: datetime
) -> dict[str, Any]:
    price = None if spending.plan is None else spending.plan.price
    statuses = list_nearest_limit(actor=member.actor, limit=_NUM_BUDGETS, price=price, now=now)
    return {
        "budgets": [present_budget(status, spending.currency) for status in statuses],
        "may_write": member.actor.has_permission(Permission.WRITE_BUDGETS),
    }

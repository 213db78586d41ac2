"""Budget alerts at 50, 80 and 100% of a budget's limit.

The task that prices usage (rating) creates them. In a month, a budget has at most one alert for
each threshold.
"""

from datetime import date, datetime
from typing import Final

from caret.contracts.pricing import BudgetScope
from caret.foundation.ids import TenantId
from tenants.base.billing_periods import utc_day
from tenants.base.permissions import Role
from tenants.billing.budgets.exhaustion import is_exhausted, read_min_reservation
from tenants.billing.budgets.month_spend import TenantMonthSpend, read_month_spend
from tenants.billing.plans.price_book import PlanPrice
from tenants.models import AlertDelivery, Budget, BudgetAlert, Membership

THRESHOLDS: Final = (50, 80, 100)  # percent
MAIL, WEBHOOK = "mail", "webhook"  # channels of a delivery


def find_crossed_thresholds(
    spent_micros: int, limit_micros: int, *, is_used_up: bool = False
) -> list[int]:
    """Return the crossed thresholds in percent. A used-up budget has crossed all of them. Pure."""
    return [
        threshold
        for threshold in THRESHOLDS
        if is_used_up or spent_micros * 100 >= limit_micros * threshold
    ]


def create_alerts(
    tenant_id: TenantId, month: date, *, price: PlanPrice | None, now: datetime
) -> int:
    """Create the due alerts of a month, and return how many.

    `price` is in force today; None: nothing has a price. The caller must be inside the tenant's
    scope.
    """
    budgets = list(Budget.objects.filter(tenant_id=tenant_id))
    if not budgets:
        return 0
    month_spend = read_month_spend(tenant_id, month)
    min_reservation_micros = read_min_reservation(tenant_id, price, on=utc_day(now))
    num_created = 0
    for budget in budgets:
        is_used_up = is_exhausted(
            budget, month_spend, min_reservation_micros=min_reservation_micros
        )
        num_created += _create_budget_alerts(
            budget, month_spend, month=month, is_used_up=is_used_up, now=now
        )
    return num_created


def _create_budget_alerts(
    budget: Budget, month_spend: TenantMonthSpend, *, month: date, is_used_up: bool, now: datetime
) -> int:
    spent_micros = month_spend.spent_of_budget(budget)
    limit_micros = month_spend.limit_of_budget(budget)
    existing_percents = BudgetAlert.objects.filter(
        tenant_id=budget.tenant_id, budget_id=budget.id, month=month
    ).values_list("percent", flat=True)
    crossed_percents = find_crossed_thresholds(spent_micros, limit_micros, is_used_up=is_used_up)
    due_percents = sorted(set(crossed_percents) - set(existing_percents))
    for percent in due_percents:
        alert = BudgetAlert.objects.create(
            tenant_id=budget.tenant_id,
            budget_id=budget.id,
            month=month,
            percent=percent,
            spent_micros=spent_micros,
            limit_micros=limit_micros,
            created_at=now,
        )
        # If several thresholds are crossed at once, only the alert of the highest one is delivered.
        if percent == due_percents[-1]:
            _queue_deliveries(alert, budget, now)
    return len(due_percents)


def _queue_deliveries(alert: BudgetAlert, budget: Budget, now: datetime) -> None:
    addresses = [(MAIL, email) for email in _find_recipients(budget)]
    if budget.webhook_url:
        addresses.append((WEBHOOK, budget.webhook_url))
    AlertDelivery.objects.bulk_create(
        AlertDelivery(
            tenant_id=alert.tenant_id,
            alert_id=alert.id,
            channel=channel,
            address=address,
            next_attempt_at=now,
        )
        for channel, address in addresses
    )


def _find_recipients(budget: Budget) -> list[str]:
    """Return the e-mail addresses of all owners and billing members.

    For the budget of a user, also return the user's address if the user is a member.
    """
    members = Membership.objects.filter(tenant_id=budget.tenant_id, ended_at__isnull=True)
    owners_and_billing = members.filter(role__in=[Role.OWNER, Role.BILLING])
    addresses = set(owners_and_billing.values_list("user__email", flat=True))
    if budget.scope == BudgetScope.USER and budget.holder_id is not None:
        budget_user = members.filter(user_id=budget.holder_id)
        addresses |= set(budget_user.values_list("user__email", flat=True))
    return sorted(addresses)

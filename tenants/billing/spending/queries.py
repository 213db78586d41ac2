"""Queries of the plan in force, the cost of the current month and the cost of each day."""

from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import Count, Subquery
from django.db.models.functions import Coalesce

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month, utc_day
from tenants.base.money import Currency
from tenants.base.permissions import Permission
from tenants.billing.ledger.credits import read_credit_balance
from tenants.billing.plans.price_book import PlanPrice, PriceBook
from tenants.billing.plans.queries import find_currency, read_price_book
from tenants.billing.spending.daily_cost import DailyCostLine, read_daily_costs
from tenants.billing.spending.month_cost import (
    MonthCost,
    compute_month_cost,
    find_first_needed_day,
)
from tenants.models import BillingState, Membership
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """The plan and price on a day, and the next change of one of them."""

    name: str
    price: PlanPrice | None  # None: the plan has no price on this day
    # The day on which the next subscription or price begins; None: no known change.
    changes_on: date | None
    next_name: str  # the plan from `changes_on`; "": no known change
    next_price: PlanPrice | None  # the price from `changes_on`; None: no known change, or no price


@dataclass(frozen=True, slots=True)
class SpendingOverview:
    """A tenant's current plan, seats and credit, and its daily costs."""

    currency: Currency
    today: date  # UTC
    plan: PlanInForce | None  # None: the first subscription begins later
    num_seats: int  # current members
    credit_micros: int
    daily_costs: tuple[DailyCostLine, ...]  # from the requested day or earlier

    @property
    def month(self) -> date:
        return start_of_month(self.today)

    @property
    def month_cost(self) -> MonthCost:
        return compute_month_cost(self.daily_costs, currency=self.currency, today=self.today)


def read_spending_overview(
    *, actor: Actor, first: date | None, now: datetime
) -> SpendingOverview | None:
    """Return the spending overview; None: the tenant has no plan. Five queries.

    `daily_costs` begin at `first`, or earlier if the month's cost needs earlier days. Raises
    Forbidden.
    """
    actor.require(Permission.READ_BILLING)
    today = utc_day(now)
    begin = min(first or today, find_first_needed_day(today))
    with tenant_scope(actor.tenant_id):
        members = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at__isnull=True)
        num_seats = members.order_by().values("tenant_id").annotate(num=Count("*")).values("num")
        state = (
            BillingState.objects.filter(tenant_id=actor.tenant_id)
            .annotate(num_seats=Coalesce(Subquery(num_seats), 0))
            .values("currency", "num_seats")
            .first()
        )
        if state is None:
            return None
        return SpendingOverview(
            currency=Currency(state["currency"]),
            today=today,
            plan=find_plan_in_force(read_price_book(actor.tenant_id), today),
            num_seats=state["num_seats"],
            credit_micros=read_credit_balance(actor.tenant_id),
            daily_costs=tuple(read_daily_costs(actor.tenant_id, first=begin, last=today)),
        )


def read_month_cost(*, actor: Actor, now: datetime) -> MonthCost | None:
    """Return the cost of the current month; None: the tenant has no plan.

    Two queries. Raises Forbidden. The result is equal to `month_cost` of `read_spending_overview`.
    """
    actor.require(Permission.READ_BILLING)
    today = utc_day(now)
    with tenant_scope(actor.tenant_id):
        currency = find_currency(actor.tenant_id)
        if currency is None:
            return None
        lines = read_daily_costs(actor.tenant_id, first=find_first_needed_day(today), last=today)
    return compute_month_cost(lines, currency=currency, today=today)


def read_currency(*, actor: Actor) -> Currency | None:
    """Return the tenant's currency; None: it has no plan. One query. Raises Forbidden."""
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        return find_currency(actor.tenant_id)


def find_plan_in_force(book: PriceBook, day: date) -> PlanInForce | None:
    """Return the plan in force on a day and the next change; None: no plan is in force. Pure."""
    subscription = book.subscription_on(day)
    if subscription is None:
        return None
    changes_on = book.next_change_after(day)
    following = None if changes_on is None else book.subscription_on(changes_on)
    return PlanInForce(
        name=subscription.plan_name,
        price=book.price_on(day),
        changes_on=changes_on,
        next_name="" if following is None else following.plan_name,
        next_price=None if changes_on is None else book.price_on(changes_on),
    )

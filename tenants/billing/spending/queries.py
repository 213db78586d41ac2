"""Reads the plan in force, what this month has come to, and what each day has cost."""

from dataclasses import dataclass
from datetime import date, datetime

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import month_of, utc_day
from tenants.base.money import Currency
from tenants.base.permissions import Permission
from tenants.billing.ledger.credits import credit_balance
from tenants.billing.plans.price_book import PlanPrice, PriceBook
from tenants.billing.plans.queries import find_currency, read_price_book
from tenants.billing.spending.daily_cost import DayLine, read_days
from tenants.models import Membership
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class PlanInForce:
    name: str
    price: PlanPrice | None  # None: the plan has none yet
    changes_on: date | None  # when the next known plan or price begins; None: none is known
    next_name: str  # of the plan that is in force then; "": as changes_on
    next_price: PlanPrice | None


@dataclass(frozen=True, slots=True)
class SpendingOverview:
    """What a tenant pays for, as it stands now."""

    currency: Currency
    today: date  # UTC
    plan: PlanInForce | None  # None: it begins later
    num_seats: int  # members now
    credit_micros: int
    days: tuple[DayLine, ...]  # those asked for, and all of this month

    @property
    def month(self) -> date:
        return month_of(self.today)


def read_spending_overview(
    *, actor: Actor, first: date | None, now: datetime
) -> SpendingOverview | None:
    """None: the tenant has no plan. `first`: the first day of `days`, at the latest the month's.
    Raises Forbidden. Six queries."""
    actor.require(Permission.READ_BILLING)
    today = utc_day(now)
    begin = month_of(today) if first is None else min(first, month_of(today))
    with tenant_scope(actor.tenant_id):
        currency = find_currency(actor.tenant_id)
        if currency is None:
            return None
        return SpendingOverview(
            currency=currency,
            today=today,
            plan=plan_in_force(read_price_book(actor.tenant_id), today),
            num_seats=_num_seats(actor),
            credit_micros=credit_balance(actor.tenant_id),
            days=tuple(read_days(actor.tenant_id, first=begin, last=today)),
        )


def read_currency(*, actor: Actor) -> Currency | None:
    """None: the tenant has no plan. Raises Forbidden. One query."""
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        return find_currency(actor.tenant_id)


def plan_in_force(book: PriceBook, day: date) -> PlanInForce | None:
    """Pure."""
    plan = book.plan_on(day)
    if plan is None:
        return None
    changes_on = book.next_change_after(day)
    following = None if changes_on is None else book.plan_on(changes_on)
    return PlanInForce(
        name=plan.plan_name,
        price=book.price_on(day),
        changes_on=changes_on,
        next_name="" if following is None else following.plan_name,
        next_price=None if changes_on is None else book.price_on(changes_on),
    )


def _num_seats(actor: Actor) -> int:
    return Membership.objects.filter(tenant_id=actor.tenant_id, ended_at__isnull=True).count()

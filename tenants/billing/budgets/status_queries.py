"""The budgets that are nearest to their limits, and the effect of a budget before it is saved."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import CharField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from caret.contracts.pricing import BudgetScope
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month, utc_day
from tenants.base.permissions import Permission
from tenants.billing.budgets.exhaustion import is_exhausted, read_min_reservation
from tenants.billing.budgets.month_spend import TenantMonthSpend, read_month_spend
from tenants.billing.budgets.operations import BudgetTarget, BudgetTerms
from tenants.billing.plans.price_book import PlanPrice
from tenants.billing.plans.queries import read_price_book
from tenants.models import Budget, Team, User
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """A budget and its spending in the current month."""

    budget_id: UUID
    scope: BudgetScope
    # The team's name or the user's e-mail address. None: the whole tenant, or a deleted holder.
    holder_name: str | None
    month_limit_micros: int  # of all seats together, if the limit is per seat
    spent_micros: int  # in the current month
    is_hard: bool
    is_exhausted: bool  # a hard budget that is used up stops completions


def list_nearest_limit(
    *, actor: Actor, limit: int, price: PlanPrice | None, now: datetime
) -> list[BudgetStatus]:
    """Return at most `limit` budgets, those with the highest spent share of their limit first.

    `price` is in force today; None: nothing has a price. Three queries, or four if models have
    prices of their own. They read all budgets of the tenant, at most MAX_BUDGETS. Raises Forbidden.
    """
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        month_spend = read_month_spend(actor.tenant_id, start_of_month(utc_day(now)))
        min_reservation_micros = read_min_reservation(actor.tenant_id, price, on=utc_day(now))
        statuses = [
            _compute_status(row, month_spend, min_reservation_micros)
            for row in _find_named_budgets(actor)
        ]
    statuses.sort(
        key=lambda budget: (-budget.spent_micros / budget.month_limit_micros, str(budget.budget_id))
    )
    return statuses[:limit]


@dataclass(frozen=True, slots=True)
class BudgetEffect:
    """The immediate effect of a budget that is not saved yet."""

    num_stopped: int  # members whose completions no hard budget stops yet, and this one would stop
    spent_micros: int  # in the current month, by the users under the budget
    limit_micros: int  # of the month


def preview_budget(
    *, actor: Actor, holder: BudgetTarget, terms: BudgetTerms, now: datetime
) -> BudgetEffect:
    """Return the immediate effect of a new budget, or of new terms for a budget.

    Up to six queries. Raises Forbidden.
    """
    actor.require(Permission.WRITE_BUDGETS)
    draft = Budget(
        scope=holder.scope,
        holder_id=holder.id,
        limit_micros=terms.limit_micros,
        is_per_seat=terms.is_per_seat,
        is_hard=terms.is_hard,
    )
    with tenant_scope(actor.tenant_id):
        month_spend = read_month_spend(actor.tenant_id, start_of_month(utc_day(now)))
        price = read_price_book(actor.tenant_id).price_on(utc_day(now))
        min_reservation_micros = read_min_reservation(actor.tenant_id, price, on=utc_day(now))
        hard_budgets = Budget.objects.filter(tenant_id=actor.tenant_id, is_hard=True)
        already_stopped: frozenset[str] = frozenset().union(
            *(
                _list_members(budget, month_spend)
                for budget in hard_budgets
                if is_exhausted(budget, month_spend, min_reservation_micros=min_reservation_micros)
            )
        )
    is_stopping = terms.is_hard and is_exhausted(
        draft, month_spend, min_reservation_micros=min_reservation_micros
    )
    return BudgetEffect(
        num_stopped=len(_list_members(draft, month_spend) - already_stopped) if is_stopping else 0,
        spent_micros=month_spend.spent_of_budget(draft),
        limit_micros=month_spend.limit_of_budget(draft),
    )


def _list_members(budget: Budget, month_spend: TenantMonthSpend) -> frozenset[str]:
    """Return the IDs of the current members that a budget applies to."""
    if budget.scope == BudgetScope.TENANT:
        return month_spend.members
    return month_spend.users_of_budget(budget) & month_spend.members


def _find_named_budgets(actor: Actor) -> QuerySet[Budget]:
    """Return the tenant's budgets with the annotation `holder_name`."""
    teams = Team.objects.filter(tenant_id=actor.tenant_id, id=OuterRef("holder_id"))
    users = User.objects.filter(id=OuterRef("holder_id"))
    name = Coalesce(
        Subquery(teams.values("name")), Subquery(users.values("email")), output_field=CharField()
    )
    return Budget.objects.filter(tenant_id=actor.tenant_id).annotate(holder_name=name)


def _compute_status(
    row: Budget, month_spend: TenantMonthSpend, min_reservation_micros: int
) -> BudgetStatus:
    return BudgetStatus(
        budget_id=row.id,
        scope=BudgetScope(row.scope),
        holder_name=row.holder_name,  # type: ignore[attr-defined]  # annotated by _find_named_budgets
        month_limit_micros=month_spend.limit_of_budget(row),
        spent_micros=month_spend.spent_of_budget(row),
        is_hard=row.is_hard,
        is_exhausted=is_exhausted(row, month_spend, min_reservation_micros=min_reservation_micros),
    )

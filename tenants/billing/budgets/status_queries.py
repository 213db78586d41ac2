"""The budgets that are nearest to their limits."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import CharField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from caret.contracts.pricing import BudgetScope
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import month_of, utc_day
from tenants.base.permissions import Permission
from tenants.billing.budgets.month_spend import TenantMonthSpend, is_exhausted, read_month
from tenants.billing.plans.price_book import PlanPrice
from tenants.models import Budget, Team, User
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """A budget and its spending in the present month."""

    budget_id: UUID
    scope: BudgetScope
    holder_name: str | None  # None: a tenant's budget, or the holder was deleted
    limit_micros: int
    spent_micros: int
    is_hard: bool
    is_exhausted: bool  # a hard budget that is used up stops completions


def list_nearest_limit(
    *, actor: Actor, limit: int, price: PlanPrice | None, now: datetime
) -> list[BudgetStatus]:
    """Return the budgets with the highest share spent, highest first. Three queries.

    Reads all budgets of the tenant, at most MAX_BUDGETS. `price` is today's; None: nothing is
    priced. Raises Forbidden.
    """
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        month = read_month(actor.tenant_id, month_of(utc_day(now)))
        statuses = [_compute_status(row, month, price) for row in _find_named_budgets(actor)]
    statuses.sort(key=lambda each: (-each.spent_micros / each.limit_micros, str(each.budget_id)))
    return statuses[:limit]


def _find_named_budgets(actor: Actor) -> QuerySet[Budget]:
    teams = Team.objects.filter(tenant_id=actor.tenant_id, id=OuterRef("holder_id"))
    users = User.objects.filter(id=OuterRef("holder_id"))
    name = Coalesce(
        Subquery(teams.values("name")), Subquery(users.values("email")), output_field=CharField()
    )
    return Budget.objects.filter(tenant_id=actor.tenant_id).annotate(holder_name=name)


def _compute_status(row: Budget, month: TenantMonthSpend, price: PlanPrice | None) -> BudgetStatus:
    return BudgetStatus(
        budget_id=row.id,
        scope=BudgetScope(row.scope),
        holder_name=row.holder_name,  # type: ignore[attr-defined]  # annotated by _find_named_budgets
        limit_micros=row.limit_micros,
        spent_micros=month.spent_of_budget(row),
        is_hard=row.is_hard,
        is_exhausted=is_exhausted(row, month.spent_of_budget(row), price),
    )

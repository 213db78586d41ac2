"""How many hard budgets one person may be under: each of his requests reserves with every one of
them, and a gateway's round trip to Redis is as long as they are many."""

from typing import Final

from django.db.models import Count

from caret.contracts.pricing import BudgetScope
from caret.foundation.ids import TenantId
from tenants.base.errors import Conflict
from tenants.models import Budget, TeamMembership

MAX_OF_PERSON: Final = 20  # of his teams; the tenant's and his own come on top


def require_budget_limit_per_user(tenant_id: TenantId) -> None:
    """Called after the change, inside the tenant's scope, with its row locked by tenant_changed:
    what is refused takes it back. Raises Conflict. One query."""
    hard = Budget.objects.filter(tenant_id=tenant_id, scope=BudgetScope.TEAM, is_hard=True)
    most = (
        TeamMembership.objects.filter(tenant_id=tenant_id, team_id__in=hard.values("holder_id"))
        .values("user_id")
        .annotate(num=Count("team_id"))
        .order_by("-num")
        .first()
    )
    if most is not None and most["num"] > MAX_OF_PERSON:
        raise Conflict(
            "A user would be subject to the hard budgets of {num} teams; the limit is "
            "{most}. Make one of the budgets soft, or remove the user from a team.",
            num=most["num"],
            most=MAX_OF_PERSON,
        )

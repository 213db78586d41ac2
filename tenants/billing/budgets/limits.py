"""The maximum number of hard budgets of teams that apply to one user.

Each request of the user reserves an amount in all these budgets. So the duration of the gateway's
Redis call grows with their number.
"""

from typing import Final

from django.db.models import Count

from caret.contracts.pricing import BudgetScope
from caret.foundation.ids import TenantId
from tenants.base.errors import Conflict
from tenants.models import Budget, TeamMembership

# The hard budgets of the tenant and of the user are not counted.
MAX_TEAM_BUDGETS_OF_USER: Final = 20


def require_budget_limit_per_user(tenant_id: TenantId) -> None:
    """Check the limit for all users of a tenant. Raises Conflict.

    Call this after the change, in the same transaction, so that the error rolls the change back.
    Must run inside the tenant's scope, after mark_snapshot_stale has locked the tenant. One query.
    """
    hard_budgets = Budget.objects.filter(tenant_id=tenant_id, scope=BudgetScope.TEAM, is_hard=True)
    user_with_most = (
        TeamMembership.objects.filter(
            tenant_id=tenant_id, team_id__in=hard_budgets.values("holder_id")
        )
        .values("user_id")
        .annotate(num=Count("team_id"))
        .order_by("-num")
        .first()
    )
    if user_with_most is not None and user_with_most["num"] > MAX_TEAM_BUDGETS_OF_USER:
        raise Conflict(
            "A user would be subject to the hard budgets of {num} teams; the limit is "
            "{most}. Make one of the budgets soft, or remove the user from a team.",
            num=user_with_most["num"],
            most=MAX_TEAM_BUDGETS_OF_USER,
        )

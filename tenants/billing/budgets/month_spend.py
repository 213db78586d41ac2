"""The spending of each month. Rating adds to it; alerts, console pages and gateways read it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from django.db.models import UUIDField, Value

from caret.contracts.pricing import BudgetScope
from caret.foundation.ids import TenantId, UserId
from tenants.base.billing_periods import start_of_month
from tenants.base.money import MAX_MICROS
from tenants.models import Budget, Membership, MonthSpend, TeamMembership


@dataclass(frozen=True, slots=True)
class SpendEntry:
    """The cost of a user's usage on one day."""

    day: date
    user_id: UserId | None  # None: a service key caused the cost
    micros: int


def add_spend(tenant_id: TenantId, entries: Iterable[SpendEntry]) -> None:
    """Add entries to the spending of their months. Two queries for each month.

    Must run inside the tenant's scope, under the tenant's billing lock.
    """
    # Micros by month and holder: a user ID, or "" for service keys.
    months: defaultdict[date, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for entry in entries:
        months[start_of_month(entry.day)][entry.user_id or ""] += entry.micros
    for month, holders in months.items():
        _add_to_month(tenant_id, month, holders)


def _add_to_month(tenant_id: TenantId, month: date, added_micros: Mapping[str, int]) -> None:
    rows = MonthSpend.objects.filter(
        tenant_id=tenant_id, month=month, holder__in=list(added_micros)
    )
    micros_by_holder = dict(rows.values_list("holder", "micros"))
    MonthSpend.objects.bulk_create(
        [
            MonthSpend(
                tenant_id=tenant_id,
                month=month,
                holder=holder,
                micros=micros_by_holder.get(holder, 0) + micros,
            )
            for holder, micros in added_micros.items()
        ],
        update_conflicts=True,
        unique_fields=["tenant_id", "month", "holder"],
        update_fields=["micros"],
    )


@dataclass(frozen=True, slots=True)
class TenantMonthSpend:
    """A tenant's spending in a month, and the current members of the tenant and of its teams."""

    by_holder: Mapping[str, int]  # micros by user ID; "": service keys
    members: frozenset[str]  # user IDs
    teams: Mapping[UUID, frozenset[str]]  # user IDs by team ID

    def spent_of_budget(self, budget: Budget) -> int:
        """Return the spending that counts for a budget, in micros."""
        if budget.scope == BudgetScope.TENANT:
            return sum(self.by_holder.values())
        if budget.scope == BudgetScope.USER:
            return self.by_holder.get(str(budget.holder_id), 0)
        return sum(self.by_holder.get(user, 0) for user in self.users_of_budget(budget))

    def limit_of_budget(self, budget: Budget) -> int:
        """Return the budget's limit in micros. A limit per seat counts at least one seat."""
        if not budget.is_per_seat:
            return budget.limit_micros
        seats = self.members if budget.holder_id is None else self.users_of_budget(budget)
        return min(MAX_MICROS, budget.limit_micros * max(1, len(seats)))

    def users_of_budget(self, budget: Budget) -> frozenset[str]:
        """Return the IDs of the users whose spending counts for the budget of a team or a user.

        For the budget of the tenant, return an empty set.
        """
        if budget.holder_id is None:
            return frozenset()
        if budget.scope == BudgetScope.USER:
            return frozenset({str(budget.holder_id)})
        return self.teams.get(budget.holder_id, frozenset())


def read_month_spend(tenant_id: TenantId, month: date) -> TenantMonthSpend:
    """Read a month's spending. Must run inside the tenant's scope. Two queries."""
    rows = MonthSpend.objects.filter(tenant_id=tenant_id, month=month)
    return build_month_spend(tenant_id, dict(rows.values_list("holder", "micros")))


def build_month_spend(tenant_id: TenantId, by_holder: Mapping[str, int]) -> TenantMonthSpend:
    """Combine the spending of a month with the current members of the tenant and of its teams.

    Must run inside the tenant's scope. One query.
    """
    # One query for both: in the rows of the tenant's own members, the team ID is NULL.
    members = Membership.objects.filter(tenant_id=tenant_id, ended_at=None).annotate(
        team_id=Value(None, output_field=UUIDField())
    )
    team_memberships = TeamMembership.objects.filter(tenant_id=tenant_id)
    rows = members.values_list("team_id", "user_id").union(
        team_memberships.values_list("team_id", "user_id"), all=True
    )
    users_by_team: defaultdict[UUID | None, set[str]] = defaultdict(set)
    for team_id, user_id in rows:
        users_by_team[team_id].add(str(user_id))
    all_users = frozenset(users_by_team.pop(None, ()))
    teams = {
        team_id: frozenset(users) for team_id, users in users_by_team.items() if team_id is not None
    }
    return TenantMonthSpend(by_holder, all_users, teams)

"""Why a tenant gets no completions: it is suspended or closing, or its budget is used up."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import OuterRef, Subquery

from caret.contracts.pricing import BudgetScope
from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import month_of, utc_day
from tenants.billing.budgets.alerts import THRESHOLDS
from tenants.billing.budgets.month_spend import is_exhausted, read_month
from tenants.billing.plans.queries import read_price_book
from tenants.models import AuditEntry, Budget, BudgetAlert
from tenants.security.authorization.directory import MembershipRow


class StopReason(StrEnum):
    SUSPENDED = "suspended"
    CLOSING = "closing"
    BUDGET = "budget"  # a hard budget of the whole tenant


@dataclass(frozen=True, slots=True)
class ServiceStop:
    reason: StopReason
    since: datetime | None  # None: the audit log has no entry of the change any more


def find_service_stop(*, tenant: MembershipRow, now: datetime) -> ServiceStop | None:
    """Return why the tenant gets no completions; None if it does. One query if it does."""
    with tenant_scope(tenant.tenant_id):
        if tenant.status is not TenantStatus.ACTIVE:
            return ServiceStop(StopReason(tenant.status), _find_status_change(tenant))
        since = _find_budget_exhaustion(tenant.tenant_id, now)
    return None if since is None else ServiceStop(StopReason.BUDGET, since)


def _find_status_change(tenant: MembershipRow) -> datetime | None:
    changes = AuditEntry.objects.filter(
        tenant_id=tenant.tenant_id,
        target=f"tenant:{tenant.slug}",
        action="tenant.status_changed",
        after__status=tenant.status.value,
    )
    return changes.order_by("-at").values_list("at", flat=True).first()


def _find_budget_exhaustion(tenant_id: TenantId, now: datetime) -> datetime | None:
    """Return since when the tenant's hard budget has been used up."""
    day = utc_day(now)
    alerts = BudgetAlert.objects.filter(
        tenant_id=tenant_id,
        budget_id=OuterRef("id"),
        month=month_of(day),
        percent=THRESHOLDS[-1],
    )
    hard = Budget.objects.filter(tenant_id=tenant_id, scope=BudgetScope.TENANT, is_hard=True)
    budget = hard.annotate(alerted_at=Subquery(alerts.values("created_at"))).exclude(
        alerted_at=None
    )
    exhausted = budget.first()
    if exhausted is None:
        return None
    # The limit may have been raised since the alert.
    month = read_month(tenant_id, month_of(day))
    price = read_price_book(tenant_id).price_on(day)
    return exhausted.alerted_at if is_exhausted(exhausted, month, price) else None

"""Finds out why a tenant gets no completions, or will soon get none.

Possible reasons: the tenant is suspended or closing, its trial ends soon or has ended, or its
budget is used up.
"""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final

from django.db.models import OuterRef, Subquery

from caret.contracts.pricing import BudgetScope
from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import ONE_DAY, start_of_month, utc_day
from tenants.billing.budgets.alerts import THRESHOLDS
from tenants.billing.budgets.exhaustion import is_exhausted, read_min_reservation
from tenants.billing.budgets.month_spend import read_month_spend
from tenants.billing.plans.queries import read_price_book
from tenants.models import AuditEntry, Budget, BudgetAlert
from tenants.security.authorization.directory import MembershipRow


class StopReason(StrEnum):
    SUSPENDED = "suspended"
    CLOSING = "closing"
    TRIAL_ENDED = "trial_ended"
    TRIAL_ENDING = "trial_ending"  # not stopped yet
    BUDGET = "budget"  # a hard budget of the whole tenant


# The notice of a trial begins this many days before its last day.
TRIAL_NOTICE_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class ServiceStop:
    """The completions of a tenant have stopped, or will stop after the trial."""

    reason: StopReason
    # The time of the change of status, or of the alert that the budget was used up. None: the
    # reason is the trial, or the audit log no longer has the entry of the change of status.
    since: datetime | None
    # The last day of the trial, or the day when the closing tenant is closed; None: neither.
    ends_on: date | None = None


def find_service_stop(*, tenant: MembershipRow, now: datetime) -> ServiceStop | None:
    """Return why the tenant gets no completions, or will soon get none; None: neither.

    At most one query, unless a hard budget has reached its limit this month.
    """
    with tenant_scope(tenant.tenant_id):
        if tenant.status is not TenantStatus.ACTIVE:
            closes_on = None if tenant.closes_at is None else utc_day(tenant.closes_at)
            since = _find_status_change(tenant)
            # StopReason has no value for closed tenants, because no user can open them.
            return ServiceStop(StopReason(tenant.status), since, closes_on)
        trial = _find_trial_notice(tenant, now)
        if trial is not None and trial.reason is StopReason.TRIAL_ENDED:
            return trial
        since = _find_budget_exhaustion(tenant.tenant_id, now)
    return trial if since is None else ServiceStop(StopReason.BUDGET, since)


def _find_trial_notice(tenant: MembershipRow, now: datetime) -> ServiceStop | None:
    last_day, today = tenant.trial_ends_on, utc_day(now)
    if last_day is None or last_day > today + TRIAL_NOTICE_DAYS * ONE_DAY:
        return None
    if last_day < today:
        return ServiceStop(StopReason.TRIAL_ENDED, None, last_day)
    return ServiceStop(StopReason.TRIAL_ENDING, None, last_day)


def _find_status_change(tenant: MembershipRow) -> datetime | None:
    changes = AuditEntry.objects.filter(
        tenant_id=tenant.tenant_id,
        target=f"tenant:{tenant.slug}",
        action="tenant.status_changed",
        after__status=tenant.status.value,
    )
    return changes.order_by("-at").values_list("at", flat=True).first()


def _find_budget_exhaustion(tenant_id: TenantId, now: datetime) -> datetime | None:
    """Return when the tenant's hard budget was used up; None: it is not used up now."""
    day = utc_day(now)
    alerts = BudgetAlert.objects.filter(
        tenant_id=tenant_id,
        budget_id=OuterRef("id"),
        month=start_of_month(day),
        percent=THRESHOLDS[-1],  # 100
    )
    hard_budgets = Budget.objects.filter(
        tenant_id=tenant_id, scope=BudgetScope.TENANT, is_hard=True
    )
    alerted_budgets = hard_budgets.annotate(
        alerted_at=Subquery(alerts.values("created_at"))
    ).exclude(alerted_at=None)
    budget = alerted_budgets.first()  # at most one budget has the scope TENANT
    if budget is None:
        return None
    # The limit may have been raised since the alert.
    month_spend = read_month_spend(tenant_id, start_of_month(day))
    price = read_price_book(tenant_id).price_on(day)
    min_reservation_micros = read_min_reservation(tenant_id, price, on=day)
    is_used_up = is_exhausted(budget, month_spend, min_reservation_micros=min_reservation_micros)
    return budget.alerted_at if is_used_up else None

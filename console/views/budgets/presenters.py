"""Rows of the budgets' pages: budgets, and their alerts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.pricing import BudgetScope
from console.texts.delivery_errors import translate_delivery_error
from console.texts.money_format import format_budget_amount
from tenants.billing.budgets.alerts import THRESHOLDS, WEBHOOK
from tenants.billing.budgets.queries import AlertView, BudgetView, DeliveryView
from tenants.billing.budgets.status_queries import BudgetStatus

_FULL_PERCENT: Final = THRESHOLDS[-1]  # 100
_NEAR_PERCENT: Final = THRESHOLDS[-2]  # from this percentage on, a budget is almost used up


@dataclass(frozen=True, slots=True)
class BudgetBar:
    """The spending of a budget in the current month."""

    budget_id: UUID
    holder: str  # name of the team or user, or "All users"
    scope: Promise
    # Amounts with their currency.
    limit: str
    spent: str
    remaining: str  # never negative
    percent: int  # spent share of the limit, rounded down; may exceed 100
    kind: str  # of the state's <c-badge>
    state: Promise
    is_hard: bool
    is_exhausted: bool

    @property
    def filled_percent(self) -> int:
        return min(self.percent, _FULL_PERCENT)


_SCOPES: Final[dict[BudgetScope, Promise]] = {
    BudgetScope.TENANT: _("Whole tenant"),
    BudgetScope.TEAM: _("Team"),
    BudgetScope.USER: _("User"),
}


def present_budget(budget: BudgetStatus | BudgetView, currency: str) -> BudgetBar:
    """Return the bar. `currency` is the budget's, which a BudgetStatus does not contain."""
    limit_micros = budget.month_limit_micros
    remaining_micros = max(0, limit_micros - budget.spent_micros)
    percent = budget.spent_micros * 100 // limit_micros
    kind, state = _describe_state(budget, percent)
    return BudgetBar(
        budget_id=budget.budget_id if isinstance(budget, BudgetStatus) else budget.id,
        holder=_name_holder(budget.scope, budget.holder_name),
        scope=_SCOPES[budget.scope],
        limit=format_budget_amount(limit_micros, limit_micros, currency),
        spent=format_budget_amount(budget.spent_micros, limit_micros, currency),
        remaining=format_budget_amount(remaining_micros, limit_micros, currency),
        percent=percent,
        kind=kind,
        state=state,
        is_hard=budget.is_hard,
        is_exhausted=budget.is_exhausted,
    )


def _describe_state(budget: BudgetStatus | BudgetView, percent: int) -> tuple[str, Promise]:
    """Return the kind of the badge, and its text."""
    if budget.is_exhausted:
        return ("bad", _("Completions stopped")) if budget.is_hard else ("warn", _("Exceeded"))
    if percent >= _NEAR_PERCENT:
        return "warn", _("Almost used up")
    return "good", _("Within budget")


def _name_holder(scope: BudgetScope, holder_name: str | None) -> str:
    if scope is BudgetScope.TENANT:
        return pgettext("whose budget", "All users")
    if holder_name is not None:
        return holder_name
    if scope is BudgetScope.TEAM:
        return gettext("Deleted team")
    return gettext("Deleted user")


@dataclass(frozen=True, slots=True)
class AlertDeliveryRow:
    """The delivery of an alert to one address."""

    delivery: DeliveryView
    is_webhook: bool  # False: an e-mail
    kind: str  # of the state's <c-badge>
    state: Promise
    error: str  # error of the last attempt; "": none


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold that triggers an alert."""

    percent: int  # of the budget's limit
    alert: AlertView | None  # None: not reached in this month
    deliveries: tuple[AlertDeliveryRow, ...]  # of the alert
    # True: a higher threshold was reached at the same time, and only its alert is sent.
    is_reported_with_higher: bool


def list_thresholds(budget: BudgetView) -> list[Threshold]:
    """Return the thresholds with their alerts of this month, lowest first."""
    alerts = {alert.percent: alert for alert in budget.alerts}
    return [_to_threshold(percent, alerts) for percent in THRESHOLDS]


def _to_threshold(percent: int, alerts: Mapping[int, AlertView]) -> Threshold:
    """Return the threshold. `alerts` are those of the month, by their percentage."""
    alert = alerts.get(percent)
    if alert is None:
        return Threshold(percent, alert, deliveries=(), is_reported_with_higher=False)
    is_reported_with_higher = any(
        other.percent > percent and other.created_at == alert.created_at
        for other in alerts.values()
    )
    deliveries = tuple(map(_to_delivery_row, alert.deliveries))
    return Threshold(percent, alert, deliveries, is_reported_with_higher=is_reported_with_higher)


def _to_delivery_row(delivery: DeliveryView) -> AlertDeliveryRow:
    if delivery.delivered_at is not None:
        kind, state = "good", _("Delivered")
    elif delivery.next_attempt_at is None:
        kind, state = "bad", _("Failed")
    elif delivery.num_attempts:
        kind, state = "warn", _("Retrying")
    else:
        kind, state = "busy", _("Sending")
    return AlertDeliveryRow(
        delivery,
        delivery.channel == WEBHOOK,
        kind,
        state,
        translate_delivery_error(delivery.last_error),
    )

"""Presentation of budgets and their alerts."""

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

_FULL: Final = THRESHOLDS[-1]
_NEAR: Final = THRESHOLDS[-2]


@dataclass(frozen=True, slots=True)
class BudgetBar:
    """The spending of a budget."""

    budget_id: UUID
    holder: str  # name of the team or user, or all users
    scope: Promise
    limit: str
    spent: str
    remaining: str  # never negative
    percent: int  # rounded down; may exceed 100
    kind: str  # kind of <c-badge>
    state: Promise
    is_hard: bool
    is_exhausted: bool

    @property
    def filled_percent(self) -> int:
        return min(self.percent, _FULL)


_SCOPES: Final[dict[BudgetScope, Promise]] = {
    BudgetScope.TENANT: _("Whole tenant"),
    BudgetScope.TEAM: _("Team"),
    BudgetScope.USER: _("User"),
}


def present_budget(budget: BudgetStatus | BudgetView, currency: str) -> BudgetBar:
    limit = budget.month_limit_micros
    remaining_micros = max(0, limit - budget.spent_micros)
    percent = budget.spent_micros * 100 // limit
    kind, state = _describe_state(budget, percent)
    return BudgetBar(
        budget_id=budget.budget_id if isinstance(budget, BudgetStatus) else budget.id,
        holder=_describe_scope(budget.scope, budget.holder_name),
        scope=_SCOPES[budget.scope],
        limit=format_budget_amount(limit, limit, currency),
        spent=format_budget_amount(budget.spent_micros, limit, currency),
        remaining=format_budget_amount(remaining_micros, limit, currency),
        percent=percent,
        kind=kind,
        state=state,
        is_hard=budget.is_hard,
        is_exhausted=budget.is_exhausted,
    )


def _describe_state(budget: BudgetStatus | BudgetView, percent: int) -> tuple[str, Promise]:
    if budget.is_exhausted:
        return ("bad", _("Completions stopped")) if budget.is_hard else ("warn", _("Exceeded"))
    if percent >= _NEAR:
        return "warn", _("Almost used up")
    return "good", _("Within budget")


def _describe_scope(scope: BudgetScope, holder_name: str | None) -> str:
    if scope is BudgetScope.TENANT:
        return pgettext("whose budget", "All users")
    if holder_name is not None:
        return holder_name
    if scope is BudgetScope.TEAM:
        return gettext("Deleted team")
    return gettext("Deleted user")


@dataclass(frozen=True, slots=True)
class SentAlert:
    delivery: DeliveryView
    is_webhook: bool
    kind: str  # kind of <c-badge>
    state: Promise
    error: str  # the last error; "": none


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold that triggers alerts."""

    percent: int
    alert: AlertView | None  # None: not reached this month
    sent: tuple[SentAlert, ...]
    is_in_next: bool  # passed together with a higher threshold, whose alert covers it


def alert_rows(budget: BudgetView) -> list[Threshold]:
    alerts = {alert.percent: alert for alert in budget.alerts}
    return [_to_threshold(percent, alerts.get(percent)) for percent in THRESHOLDS]


def _to_threshold(percent: int, alert: AlertView | None) -> Threshold:
    alerts = (
        () if alert is None else tuple(_to_sent_alert(delivery) for delivery in alert.deliveries)
    )
    return Threshold(percent, alert, alerts, is_in_next=alert is not None and not alerts)


def _to_sent_alert(delivery: DeliveryView) -> SentAlert:
    if delivery.delivered_at is not None:
        kind, state = "good", _("Delivered")
    elif delivery.next_attempt_at is None:
        kind, state = "bad", _("Failed")
    elif delivery.num_attempts:
        kind, state = "warn", _("Retrying")
    else:
        kind, state = "busy", _("Sending")
    return SentAlert(
        delivery,
        delivery.channel == WEBHOOK,
        kind,
        state,
        translate_delivery_error(delivery.last_error),
    )

"""Delivery of budget alerts by e-mail and webhook, with retries for about three days.

Before each attempt, a worker claims the delivery by setting the time of the next attempt. So two
workers never make the same attempt, and no lock is held while a mail server or webhook is slow. If
the worker is killed, the message may be sent twice. Both messages have the same ID, so that
receivers can drop the second one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import QuerySet

from caret.contracts.pricing import BudgetScope
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.money import format_amount
from tenants.base.validation.email_domains import make_anonymous_email
from tenants.base.worker.failure_log import FailureLog
from tenants.billing.budgets import webhook
from tenants.billing.budgets.alerts import WEBHOOK
from tenants.billing.plans.queries import find_currency
from tenants.models import (
    AlertDelivery,
    Budget,
    BudgetAlert,
    Team,
    Tenant,
    User,
)
from tenants.security.authorization.directory import list_tenants

MAX_AT_ONCE: Final = 50  # deliveries of a tenant in one run
# The wait after each failure: 1, 2, 4 ... minutes, up to six hours.
_FIRST_WAIT: Final = timedelta(minutes=1)
_MAX_WAIT: Final = timedelta(hours=6)
_MAX_DOUBLINGS: Final = 12  # more than _MAX_WAIT needs; avoids large numbers
_MAX_ATTEMPTS: Final = 20  # within about three days

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _AlertMessage:
    """The contents of an alert's message."""

    delivery_id: str
    tenant_id: TenantId
    budget_id: str
    budget_name: str  # such as "the budget of the team Shop"; "a deleted budget"
    tenant_name: str
    percent: int  # the threshold that the spending has crossed
    spent: str  # amount with the currency: EUR 12.50
    limit: str  # amount with the currency
    month: str  # such as 2026-11
    is_hard: bool  # False for a deleted budget
    is_deleted: bool  # the budget was deleted after the alert was created


def deliver_all_alerts(*, now: datetime) -> None:
    """Deliver the due alerts of all tenants.

    The failure of one tenant is logged, and does not stop the run.
    """
    for tenant_id in list_tenants().values():
        with FailureLog("budget.not_delivered", tenant_id=tenant_id):
            deliver_due_alerts(tenant_id, now=now)


def deliver_due_alerts(tenant_id: TenantId, *, now: datetime) -> int:
    """Deliver a tenant's due alerts, and return how many deliveries succeeded."""
    return sum(
        _try_delivery(tenant_id, delivery, now) for delivery in _claim_deliveries(tenant_id, now)
    )


def compute_alert_backoff(num_attempts: int) -> timedelta | None:
    """Return the wait after attempt `num_attempts`, counted from 1; None: it was the last. Pure."""
    if num_attempts >= _MAX_ATTEMPTS:
        return None
    doublings = min(num_attempts - 1, _MAX_DOUBLINGS)
    return min(_FIRST_WAIT * (1 << doublings), _MAX_WAIT)


def _claim_deliveries(tenant_id: TenantId, now: datetime) -> list[AlertDelivery]:
    """Return the due deliveries. Count an attempt of each, and set the time of the next attempt."""
    with tenant_scope(tenant_id):
        due = list(
            AlertDelivery.objects.select_for_update(skip_locked=True)
            .filter(tenant_id=tenant_id, next_attempt_at__lte=now)
            .order_by("next_attempt_at")[:MAX_AT_ONCE]
        )
        for delivery in due:
            delivery.num_attempts += 1
            wait = compute_alert_backoff(delivery.num_attempts)
            delivery.next_attempt_at = None if wait is None else now + wait
            delivery.save(update_fields=["num_attempts", "next_attempt_at"])
    return due


def _try_delivery(tenant_id: TenantId, delivery: AlertDelivery, now: datetime) -> bool:
    """Make one attempt, store its result, and return whether it succeeded."""
    try:
        message = _build_message(tenant_id, delivery)
        if delivery.channel == WEBHOOK:
            webhook.send_webhook(delivery.address, _build_webhook(message), now=now)
        else:
            _send_mail(delivery.address, message)
    except (OSError, SMTPException, webhook.WebhookDeliveryError) as error:
        # An expected failure: the delivery is retried, and the budget's page shows the error.
        log.warning("budget.alert_not_delivered", tenant_id=tenant_id, channel=delivery.channel)
        _update_delivery(delivery, last_error=_describe_error(error))
        return False
    _update_delivery(delivery, delivered_at=now, next_attempt_at=None, last_error="")
    return True


def _describe_error(error: OSError | SMTPException | webhook.WebhookDeliveryError) -> str:
    """Return a text without the mail server's message, which may contain personal data."""
    if isinstance(error, webhook.WebhookDeliveryError):
        return str(error)
    return f"The mail server did not accept the message ({type(error).__name__})."


def _update_delivery(delivery: AlertDelivery, **fields: object) -> None:
    with tenant_scope(TenantId(str(delivery.tenant_id))):
        AlertDelivery.objects.filter(tenant_id=delivery.tenant_id, id=delivery.id).update(**fields)


def _build_message(tenant_id: TenantId, delivery: AlertDelivery) -> _AlertMessage:
    with tenant_scope(tenant_id):
        alert = BudgetAlert.objects.get(tenant_id=tenant_id, id=delivery.alert_id)
        budget = Budget.objects.filter(tenant_id=tenant_id, id=alert.budget_id).first()
        currency = find_currency(tenant_id)
        return _AlertMessage(
            delivery_id=str(delivery.id),
            tenant_id=tenant_id,
            budget_id=str(alert.budget_id),
            budget_name="a deleted budget" if budget is None else _describe_budget(budget),
            tenant_name=Tenant.objects.get(id=tenant_id).name,
            percent=alert.percent,
            spent=f"{currency} {format_amount(alert.spent_micros)}",
            limit=f"{currency} {format_amount(alert.limit_micros)}",
            month=f"{alert.month:%Y-%m}",
            is_hard=budget is not None and budget.is_hard,
            is_deleted=budget is None,
        )


def _describe_budget(budget: Budget) -> str:
    if budget.holder_id is None:
        return "the budget of the whole tenant"
    if budget.scope == BudgetScope.USER:
        email = User.objects.values_list("email", flat=True).get(id=budget.holder_id)
        return f"the budget of {email}"
    teams = Team.objects.filter(tenant_id=budget.tenant_id, id=budget.holder_id)
    name = teams.values_list("name", flat=True).first() or "(deleted)"
    return f"the budget of the team {name}"


def _send_mail(address: str, message: _AlertMessage) -> None:
    """Send an e-mail. Raises OSError, SMTPException."""
    if message.is_deleted:
        consequence = "The budget was deleted after this alert was created."
    elif message.is_hard:
        consequence = "At 100%, completions stop until the month ends (UTC) or you raise the limit."
    else:
        consequence = "This is a soft budget: completions continue at 100%."
    EmailMessage(
        subject=f"{message.tenant_name}: {message.percent}% of a budget is used",
        body=(
            f"{message.percent}% of {message.budget_name} for {message.month} is used:\n"
            f"{message.spent} of {message.limit}.\n\n{consequence}\n\n"
            f"{settings.CONSOLE_URL}\n"
        ),
        to=[address],
        headers={"Message-ID": f"<{message.delivery_id}@caret>"},
    ).send()


def _build_webhook(message: _AlertMessage) -> webhook.Webhook:
    return webhook.Webhook(
        id=message.delivery_id,
        tenant_and_budget=(message.tenant_id, message.budget_id),
        payload={
            "type": "budget.alert",
            "data": {
                "budget_id": message.budget_id,
                "month": message.month,
                "percent": message.percent,
                "spent": message.spent,
                "limit": message.limit,
                "is_hard": message.is_hard,
            },
        },
    )


def anonymize_recipients(deliveries: QuerySet[AlertDelivery]) -> int:
    """Replace the addresses of deliveries, stop their retries, and return the number of deliveries.

    Each delivery gets an anonymous e-mail address of its own, because an alert cannot have two
    deliveries with the same address.
    """
    ids = list(deliveries.values_list("id", flat=True))
    for row_id in ids:
        deliveries.model._default_manager.filter(id=row_id).update(
            address=make_anonymous_email(), next_attempt_at=None
        )
    return len(ids)

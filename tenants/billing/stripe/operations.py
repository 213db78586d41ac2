"""Delivery of customers and meter events to Stripe. Stripe counts no event twice.

Stripe remembers an identifier for 24 hours. An event whose outcome is unknown (a timeout, a 5xx
status) is retried for 23 hours. After that it is neither sent again nor counted as sent, and the
reconciliation shows the difference.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import utc_day
from tenants.base.errors import NotFound
from tenants.base.worker.failure_log import FailureLog
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.operations import lock_billing
from tenants.billing.stripe.meter_events import MAX_AGE, add_events
from tenants.billing.stripe.port import (
    MeterEvent,
    Stripe,
    StripeFailed,
    StripeOutcomeUnknown,
    StripeRejected,
)
from tenants.models import LedgerEntry, StripeCustomer, StripeEvent, Tenant
from tenants.security.authorization.directory import list_tenants

MAX_AT_ONCE: Final = 200  # events of a tenant in one run
_MAX_RETRY_AGE: Final = timedelta(hours=23)  # since the first attempt with an unknown outcome
_FIRST_WAIT: Final = timedelta(minutes=1)  # between the first attempt and the second
_MAX_WAIT: Final = timedelta(hours=1)  # between two attempts
_MAX_DOUBLINGS: Final = 10  # of the wait: more than _MAX_WAIT needs; avoids large numbers
_MAX_ERROR_CHARS: Final = 200  # of StripeEvent.last_error
log = structlog.get_logger(__name__)


def report_all_tenants(stripe: Stripe, *, now: datetime) -> None:
    """Create missing customers, and send the due events of all tenants.

    The failure of one tenant is logged, and does not stop the run.
    """
    for tenant_id in list_tenants().values():
        with FailureLog("stripe.not_reported", tenant_id=tenant_id):
            _report_tenant(stripe, tenant_id, now)


def _report_tenant(stripe: Stripe, tenant_id: TenantId, now: datetime) -> None:
    try:
        ensure_customer(stripe, tenant_id, now=now)
        send_due_events(stripe, tenant_id, now=now)
    except NotFound:
        return  # without a plan there is nothing to report
    except StripeFailed as error:
        log.warning("stripe.customer_not_created", tenant_id=tenant_id, reason=str(error))


def ensure_customer(stripe: Stripe, tenant_id: TenantId, *, now: datetime) -> str:
    """Return the tenant's customer ID at Stripe; create the customer if it is missing.

    For a new customer, the tokens of the last 30 days are reported, too. Raises StripeFailed, and
    NotFound for a tenant without a plan.
    """
    with tenant_scope(tenant_id):
        lock_billing(tenant_id)  # raises NotFound for a tenant without a plan
        customer = StripeCustomer.objects.filter(tenant_id=tenant_id).first()
        name = Tenant.objects.values_list("name", flat=True).get(id=tenant_id)
    if customer is not None:
        return customer.customer_id
    # No lock is held during the call: concurrent calls with the same idempotency key get the same
    # customer.
    idempotency_key = f"caret-customer-{tenant_id}"
    customer_id = stripe.create_customer(
        idempotency_key=idempotency_key, name=name, tenant_id=tenant_id
    )
    with tenant_scope(tenant_id):
        lock_billing(tenant_id)  # nothing can be posted meanwhile, so each entry is reported once
        row = StripeCustomer(tenant_id=tenant_id, customer_id=customer_id, created_at=now)
        StripeCustomer.objects.bulk_create([row], ignore_conflicts=True)
        recent = LedgerEntry.objects.filter(
            tenant_id=tenant_id, account=LedgerAccountCode.TOKENS, day__gte=utc_day(now - MAX_AGE)
        )
        add_events(tenant_id, recent.iterator(), now=now)
    return customer_id


def send_due_events(stripe: Stripe, tenant_id: TenantId, *, now: datetime) -> int:
    """Send a tenant's due events, at most MAX_AT_ONCE. Return the number that arrived."""
    with tenant_scope(tenant_id):
        customer = StripeCustomer.objects.filter(tenant_id=tenant_id).first()
        if customer is None:
            return 0
        due = _claim_events(tenant_id, now)
    return sum(_send_event(stripe, customer, claim, now) for claim in due)


def compute_stripe_backoff(num_attempts: int) -> timedelta:
    """Return the wait between attempt `num_attempts`, counted from 1, and the next one. Pure.

    The waits are 1, 2, 4 ... minutes, up to an hour.
    """
    doublings = min(num_attempts - 1, _MAX_DOUBLINGS)
    return min(_FIRST_WAIT * (1 << doublings), _MAX_WAIT)


@dataclass(frozen=True, slots=True)
class _MeterEventClaim:
    """An event for the next attempt."""

    event: StripeEvent
    unconfirmed_since: datetime | None  # event.unconfirmed_since before this attempt


def _claim_events(tenant_id: TenantId, now: datetime) -> list[_MeterEventClaim]:
    """Claim due events.

    They become due again only after a wait, so other workers do not claim them meanwhile. If
    sending takes longer than the wait, an event may be sent twice, and Stripe counts it once.
    """
    due = list(
        StripeEvent.objects.select_for_update(skip_locked=True)
        .filter(tenant_id=tenant_id, next_attempt_at__lte=now)
        .order_by("next_attempt_at", "identifier")[:MAX_AT_ONCE]
    )
    claims = [_MeterEventClaim(event, event.unconfirmed_since) for event in due]
    for event in due:
        event.num_attempts += 1
        event.next_attempt_at = now + compute_stripe_backoff(event.num_attempts)
        # A worker that is killed from here on may have sent the event.
        event.unconfirmed_since = event.unconfirmed_since or now
        event.save(update_fields=["num_attempts", "next_attempt_at", "unconfirmed_since"])
    return claims


def _send_event(
    stripe: Stripe, customer: StripeCustomer, claim: _MeterEventClaim, now: datetime
) -> bool:
    event = claim.event
    if _may_be_forgotten(claim, now):
        _update_event(
            event,
            next_attempt_at=None,
            last_error="It is not known whether Stripe has this event. Reconcile the month.",
        )
        return False
    try:
        stripe.send_event(
            MeterEvent(
                identifier=event.identifier,
                event_name=event.event_name,
                customer_id=customer.customer_id,
                quantity=event.quantity,
                occurred_at=event.occurred_at,
            )
        )
    except StripeFailed as error:
        log.warning("stripe.event_not_sent", tenant_id=str(event.tenant_id), reason=str(error))
        _record_failure(claim, error)
        return False
    _update_event(event, sent_at=now, next_attempt_at=None, unconfirmed_since=None, last_error="")
    return True


def _record_failure(claim: _MeterEventClaim, error: StripeFailed) -> None:
    """Store the error.

    _claim_events has marked the event as unconfirmed. Only an unknown outcome keeps this mark.
    """
    fields: dict[str, object] = {"last_error": str(error)[:_MAX_ERROR_CHARS]}
    if not isinstance(error, StripeOutcomeUnknown):
        fields["unconfirmed_since"] = claim.unconfirmed_since
    if isinstance(error, StripeRejected):
        fields["next_attempt_at"] = None
    _update_event(claim.event, **fields)


def _may_be_forgotten(claim: _MeterEventClaim, now: datetime) -> bool:
    """Return whether Stripe may have got the event and forgotten its identifier since."""
    return claim.unconfirmed_since is not None and now - claim.unconfirmed_since > _MAX_RETRY_AGE


def _update_event(event: StripeEvent, **fields: object) -> None:
    with tenant_scope(TenantId(str(event.tenant_id))):
        StripeEvent.objects.filter(tenant_id=event.tenant_id, identifier=event.identifier).update(
            **fields
        )

"""Credits: amounts that the platform grants to a tenant. Invoices subtract them before tax."""

from datetime import datetime
from typing import Final

from django.db.models import Sum

from caret.foundation.ids import TenantId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import choose_booking_month, utc_day
from tenants.base.errors import InvalidValue
from tenants.base.money import MAX_MICROS, MICROS_PER_CENT
from tenants.base.validation.text import parse_reason
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.operations import (
    Posting,
    SourceKind,
    TransactionDraft,
    TransactionSource,
    lock_billing,
    post_transaction,
)
from tenants.billing.ledger.queries import find_open_month
from tenants.models import LedgerEntry, LedgerTransaction
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

# Only transactions of these kinds post to the account of credits.
_CREDIT_SOURCES: Final = (SourceKind.CREDIT, SourceKind.INVOICE)


def grant_credit(*, actor: Actor, amount_micros: int, reason: str, now: datetime) -> None:
    """Grant a credit. `amount_micros` must be whole cents.

    Raises Forbidden, InvalidValue, and NotFound for a tenant without a plan.
    """
    actor.require_platform()
    reason = parse_reason(reason)
    if not 0 < amount_micros <= MAX_MICROS or amount_micros % MICROS_PER_CENT:
        raise InvalidValue(
            "amount_micros", "Enter whole cents, up to {most} micros.", most=MAX_MICROS
        )
    grant_id = str(uuid7())
    with tenant_scope(actor.tenant_id):
        state, day = lock_billing(actor.tenant_id), utc_day(now)
        draft = TransactionDraft(
            source=TransactionSource(SourceKind.CREDIT, grant_id),
            day=day,
            month=choose_booking_month(day, open_month=find_open_month(state), now=now),
            memo="Credit granted",
            postings=[
                Posting(LedgerAccountCode.PROMOTIONS, amount_micros),
                Posting(LedgerAccountCode.CREDITS, -amount_micros),
            ],
        )
        post_transaction(state, draft, now=now)
        record_change(
            actor=actor,
            action="billing.credit_granted",
            target=f"credit:{grant_id}",
            change=(None, {"amount_micros": amount_micros, "currency": state.currency}),
            reason=reason,
            now=now,
        )


def read_credit_balance(tenant_id: TenantId) -> int:
    """Return the remaining credit in micros. Must run inside the tenant's scope."""
    # Most transactions have other sources. With this condition, the query skips their entries.
    transactions = LedgerTransaction.objects.filter(
        tenant_id=tenant_id, source_kind__in=_CREDIT_SOURCES
    )
    entries = LedgerEntry.objects.filter(
        tenant_id=tenant_id,
        account=LedgerAccountCode.CREDITS,
        transaction_id__in=transactions.values("id"),
    )
    return -(entries.aggregate(total=Sum("amount_micros"))["total"] or 0)

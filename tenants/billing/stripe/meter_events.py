"""The queue of meter events for Stripe: one for each ledger entry of tokens."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

from caret.foundation.ids import TenantId
from tenants.base.billing_periods import start_of_day
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.pricing import TIER_LINES
from tenants.models import LedgerEntry, StripeCustomer, StripeEvent

_NOON: Final = timedelta(hours=12)
# Stripe accepts events that are up to 35 days old; the difference leaves time for retries.
MAX_AGE: Final = timedelta(days=30)


def build_event_name(line: str) -> str:
    """Return the event name of a line: caret_fast_cached_prompt_tokens for fast.cached_prompt.

    It selects the meter at Stripe. Meters count tokens, not amounts. A model with prices of its own
    can therefore share the meters of its tier.
    """
    tier, kind, *_ = line.split(".", 2)
    return f"caret_{tier}_{kind}_tokens"


def choose_event_time(day: date, now: datetime) -> datetime:
    """Return the day's noon, or the nearest time from `now` - MAX_AGE to `now`."""
    return min(max(start_of_day(day) + _NOON, now - MAX_AGE), now)


def enqueue_meter_events(tenant_id: TenantId, transaction_id: UUID, *, now: datetime) -> None:
    """Queue the events of a ledger transaction, in the database transaction that posts it.

    Must run inside the tenant's scope. One query for a tenant that is not a customer at Stripe.
    """
    if StripeCustomer.objects.filter(tenant_id=tenant_id).exists():
        entries = LedgerEntry.objects.filter(tenant_id=tenant_id, transaction_id=transaction_id)
        add_events(tenant_id, entries.filter(account=LedgerAccountCode.TOKENS), now=now)


def _build_identifier(entry: LedgerEntry) -> str:
    """Return a name that is unique at Stripe.

    The line of a model can be too long for Stripe, so the entry's position replaces it.
    """
    is_model_line = entry.line not in TIER_LINES
    return f"{entry.transaction_id}:{entry.position if is_model_line else entry.line}"


def add_events(tenant_id: TenantId, entries: Iterable[LedgerEntry], *, now: datetime) -> None:
    """Queue an event for each entry that has none yet. Must run inside the tenant's scope."""
    StripeEvent.objects.bulk_create(
        (
            StripeEvent(
                tenant_id=tenant_id,
                identifier=_build_identifier(entry),
                event_name=build_event_name(entry.line),
                quantity=entry.quantity,
                occurred_at=choose_event_time(entry.day, now),
                next_attempt_at=now,
            )
            for entry in entries
        ),
        ignore_conflicts=True,
        batch_size=1_000,
    )

"""Reconciliation of a month between the ledger and Stripe, meter by meter."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Count, Q, Sum

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_day, start_of_next_month
from tenants.billing.pricing import TIER_LINES
from tenants.billing.stripe.meter_events import build_event_name
from tenants.billing.stripe.port import Stripe
from tenants.models import StripeCustomer, StripeEvent


@dataclass(frozen=True, slots=True)
class MeterComparison:
    """One meter in a month, in the ledger and at Stripe."""

    event_name: str
    booked: int  # tokens of all events that were queued for the ledger's entries
    sent: int  # tokens of `booked` that are known to have arrived
    waiting: int  # number of events that will be sent again, or for the first time
    stuck: int  # number of events that are not sent again: rejected, or with an unknown outcome
    stripe_quantity: int  # tokens that Stripe has counted

    @property
    def is_reconciled(self) -> bool:
        """Return True if the totals are equal, and no event waits or is stuck."""
        return self.booked == self.stripe_quantity and not self.stuck and not self.waiting


def reconcile_month(stripe: Stripe, tenant_id: TenantId, *, month: date) -> list[MeterComparison]:
    """Compare each meter's totals in the ledger and at Stripe. Events count by their time in UTC.

    Return an empty list for a tenant that is not a customer at Stripe. Raises StripeFailed.
    """
    since, until = start_of_day(month), start_of_day(start_of_next_month(month))
    with tenant_scope(tenant_id):
        customer = StripeCustomer.objects.filter(tenant_id=tenant_id).first()
        if customer is None:
            return []
        rows = (
            StripeEvent.objects.filter(
                tenant_id=tenant_id, occurred_at__gte=since, occurred_at__lt=until
            )
            .values("event_name")
            .annotate(
                booked=Sum("quantity"),
                sent=Sum("quantity", filter=Q(sent_at__isnull=False), default=0),
                waiting=Count("identifier", filter=Q(next_attempt_at__isnull=False)),
                stuck=Count(
                    "identifier", filter=Q(next_attempt_at__isnull=True, sent_at__isnull=True)
                ),
            )
        )
        own_totals = {row["event_name"]: row for row in rows}
    stripe_totals = stripe.read_totals(customer_id=customer.customer_id, since=since, until=until)
    names = sorted(build_event_name(line) for line in TIER_LINES)
    return [
        _compare_meter(name, own_totals.get(name, {}), stripe_totals.get(name, 0)) for name in names
    ]


def _compare_meter(
    name: str, own_totals: Mapping[str, Any], stripe_quantity: int
) -> MeterComparison:
    return MeterComparison(
        event_name=name,
        booked=int(own_totals.get("booked", 0)),
        sent=int(own_totals.get("sent", 0)),
        waiting=own_totals.get("waiting", 0),
        stuck=own_totals.get("stuck", 0),
        stripe_quantity=stripe_quantity,
    )

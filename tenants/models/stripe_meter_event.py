"""What is reported to Stripe: a tenant's customer there, meter events until they have arrived."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant


class StripeCustomer(models.Model):
    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    customer_id = models.CharField(max_length=80)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_stripe_customer"
        constraints: ClassVar = [
            RowSecurity(name="stripe_customer_tenant", privileges=APPEND_ONLY),
        ]

    def __str__(self) -> str:
        return self.customer_id


class StripeEvent(models.Model):
    """Written in the transaction that books what it reports."""

    pk = models.CompositePrimaryKey("tenant_id", "identifier")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    identifier = models.CharField(max_length=100)  # the ledger's transaction and line
    event_name = models.CharField(max_length=100)  # of the meter
    quantity = models.BigIntegerField()
    occurred_at = models.DateTimeField()  # as Stripe is told: the day's noon, within its 35 days
    attempts = models.PositiveSmallIntegerField(default=0)
    # None: none of the attempts can have arrived unseen. Else when the first of them was made.
    doubtful_since = models.DateTimeField(null=True)
    next_at = models.DateTimeField(null=True)  # None: it has arrived, or is not tried again
    sent_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=200)  # "": none

    class Meta:
        db_table = "tenants_stripe_event"
        constraints: ClassVar = [
            RowSecurity(name="stripe_event_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]
        indexes: ClassVar = [
            # Reader: the task that sends.
            models.Index(
                fields=["tenant", "next_at"],
                name="stripe_event_due",
                condition=models.Q(next_at__isnull=False),
            ),
            # Reader: the reconciliation of a month.
            models.Index(fields=["tenant", "occurred_at"], name="stripe_event_month"),
        ]

    def __str__(self) -> str:
        return self.identifier

"""Subscriptions of tenants to plans, and the progress of billing."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.plan import Plan
from tenants.models.tenant import Tenant


class Subscription(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "starts_on")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    starts_on = models.DateField()  # in force until the next subscription starts
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, db_index=False, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="subscription_tenant", privileges=APPEND_ONLY),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} from {self.starts_on}"


class BillingState(models.Model):
    """The billing progress of a tenant, created with the first subscription.

    Every operation that posts to the ledger locks this row first, so that only one transaction at a
    time writes the ledger.
    """

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    currency = models.CharField(max_length=3)
    # The ledger contains all usage batches up to this number.
    rated_batch = models.BigIntegerField(default=0)
    seats_booked_on = models.DateField(null=True)  # last day whose seats are posted; None: no day
    invoiced_month = models.DateField(null=True)  # first day of the last invoiced month; None: none
    # Of the last invoice or credit note; 0: none exists.
    last_invoice_number = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "tenants_billing_state"
        constraints: ClassVar = [
            RowSecurity(name="billing_state_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} up to batch {self.rated_batch}"


class UsageBatchCounter(models.Model):
    """A counter of the batches in which usage records arrive.

    A transaction that adds a batch locks this row until it commits. When another transaction sees a
    batch, it therefore also sees all batches with lower numbers.
    """

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    last_batch = models.BigIntegerField(default=0)  # number of the last batch; 0: no batch yet

    class Meta:
        db_table = "tenants_usage_batch_counter"
        # "usage_feed" is an earlier name of the table. A new name would need a migration.
        constraints: ClassVar = [
            RowSecurity(name="usage_feed_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}: {self.last_batch}"

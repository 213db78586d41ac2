"""Which plan a tenant has from which day on, and how far its billing has come."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.plan import Plan
from tenants.models.tenant import Tenant


class Subscription(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "starts_on")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    starts_on = models.DateField()  # until the next one's
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, db_index=False, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="subscription_tenant", privileges=APPEND_ONLY),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} from {self.starts_on}"


class BillingState(models.Model):
    """Made with the first subscription. Whoever books, rates or invoices locks it first, so that a
    tenant's ledger is written by one at a time."""

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    currency = models.CharField(max_length=3)
    rated_batch = models.BigIntegerField(default=0)  # of usage; all up to it is in the ledger
    seats_booked_on = models.DateField(null=True)  # the last day; None: none yet
    invoiced_month = models.DateField(null=True)  # the last; None: none yet
    last_number = models.PositiveIntegerField(default=0)  # of an invoice

    class Meta:
        db_table = "tenants_billing_state"
        constraints: ClassVar = [
            RowSecurity(name="billing_state_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} up to batch {self.rated_batch}"


class UsageBatchCounter(models.Model):
    """Numbers the batches in which usage came in, one after the other: who has seen a number has
    seen all that is numbered lower."""

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    last_batch = models.BigIntegerField(default=0)

    class Meta:
        db_table = "tenants_usage_batch_counter"
        constraints: ClassVar = [
            RowSecurity(name="usage_feed_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}: {self.last_batch}"

"""Data for Stripe: the tenant's customer, and meter events with the state of their delivery."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant


class StripeCustomer(models.Model):
    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    customer_id = models.CharField(max_length=80)  # the customer's ID at Stripe
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_stripe_customer"
        constraints: ClassVar = [
            RowSecurity(name="stripe_customer_tenant", privileges=APPEND_ONLY),
        ]

    def __str__(self) -> str:
        return self.customer_id


class StripeEvent(models.Model):
    """A report of usage to a meter of Stripe, written in the transaction that posts the usage."""

    pk = models.CompositePrimaryKey("tenant_id", "identifier")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    # The ID of the ledger transaction, a colon, and the entry's line of usage. The line of a model
    # can be too long for Stripe: its entry is identified by its position instead.
    identifier = models.CharField(max_length=100)
    event_name = models.CharField(max_length=100)  # of the meter
    quantity = models.BigIntegerField()  # tokens
    # The time that is reported to Stripe: noon of the day, or the nearest time that Stripe accepts.
    occurred_at = models.DateTimeField()
    num_attempts = models.PositiveSmallIntegerField(default=0)
    # The time of the first attempt after which it is unknown whether the event arrived. None: there
    # is no such attempt.
    unconfirmed_since = models.DateTimeField(null=True)
    next_attempt_at = models.DateTimeField(null=True)  # None: arrived, or no further attempt
    sent_at = models.DateTimeField(null=True)  # None: not known to have arrived
    last_error = models.CharField(max_length=200)  # "": none

    class Meta:
        db_table = "tenants_stripe_event"
        constraints: ClassVar = [
            RowSecurity(name="stripe_event_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]
        indexes: ClassVar = [
            # Reader: the sending task.
            models.Index(
                fields=["tenant", "next_attempt_at"],
                name="stripe_event_due",
                condition=models.Q(next_attempt_at__isnull=False),
            ),
            # Reader: the reconciliation of a month.
            models.Index(fields=["tenant", "occurred_at"], name="stripe_event_month"),
        ]

    def __str__(self) -> str:
        return self.identifier

"""Monthly budgets, spending and alerts."""

from typing import ClassVar

from django.db import models

from caret.contracts.pricing import BudgetScope
from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant


class Budget(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    scope = models.CharField(max_length=8, choices=[(s.value, s.name) for s in BudgetScope])
    holder_id = models.UUIDField(null=True)  # the team or the user; None: the whole tenant
    limit_micros = models.BigIntegerField()  # for a UTC month, in the ledger's currency
    # True: the limit of the month is limit_micros times the number of seats, of the whole tenant or
    # of the holder.
    is_per_seat = models.BooleanField(default=False, db_default=False)
    is_hard = models.BooleanField(default=True)  # False: alerts only
    webhook_url = models.CharField(max_length=500)  # "": alerts by e-mail only
    version = models.PositiveIntegerField(default=1)  # increases with each change
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "scope", "holder_id"], name="budget_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=models.Q(limit_micros__gt=0), name="budget_limit_positive"
            ),
            RowSecurity(name="budget_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.limit_micros}"


class MonthSpend(models.Model):
    """The spending of a user, or of all service keys, in a UTC month.

    A request counts in the month in which it was received. Rating adds its cost in the transaction
    that posts the usage. Costs are rounded up to a micro by the same function as in gateways.
    Gateways round the cost of each request; rating rounds the cost of several requests together.
    """

    pk = models.CompositePrimaryKey("tenant_id", "month", "holder")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    month = models.DateField()  # its first day
    holder = models.CharField(max_length=36)  # a user's ID; "": all service keys
    micros = models.BigIntegerField()

    class Meta:
        db_table = "tenants_month_spend"
        constraints: ClassVar = [
            RowSecurity(name="month_spend_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return f"{self.month} {self.holder} {self.micros}"


class BudgetAlert(models.Model):
    """An alert that a budget reached a threshold; at most one a month for each threshold."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    budget_id = models.UUIDField()  # no foreign key: the alert outlives its budget
    month = models.DateField()  # its first day
    percent = models.PositiveSmallIntegerField()  # one of tenants.billing.budgets.alerts.THRESHOLDS
    spent_micros = models.BigIntegerField()  # at the time of the alert
    limit_micros = models.BigIntegerField()  # of the month, at the time of the alert
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_budget_alert"
        constraints: ClassVar = [
            # Used by the query for the alerts of a budget.
            models.UniqueConstraint(
                fields=["tenant", "budget_id", "month", "percent"], name="budget_alert_once"
            ),
            RowSecurity(name="budget_alert_tenant", privileges=APPEND_ONLY),
        ]

    def __str__(self) -> str:
        return f"{self.percent}% of {self.budget_id}"


class AlertDelivery(models.Model):
    """The delivery of an alert to one e-mail address or webhook."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    alert_id = models.UUIDField()  # the migration adds its foreign key
    channel = models.CharField(max_length=8)  # mail or webhook
    address = models.CharField(max_length=500)  # an e-mail address, or the URL of a webhook
    num_attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)  # None: delivered, or no further attempt
    delivered_at = models.DateTimeField(null=True)  # None: not delivered
    last_error = models.CharField(max_length=200)  # "": none

    class Meta:
        db_table = "tenants_alert_delivery"
        constraints: ClassVar = [
            # Used by the query for the deliveries of an alert.
            models.UniqueConstraint(
                fields=["tenant", "alert_id", "channel", "address"], name="alert_delivery_once"
            ),
            RowSecurity(name="alert_delivery_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]
        indexes: ClassVar = [
            # Used by the delivery task's query for due deliveries.
            models.Index(
                fields=["tenant", "next_attempt_at"],
                name="alert_delivery_due",
                condition=models.Q(next_attempt_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel} {self.address}"

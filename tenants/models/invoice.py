"""Invoices and credit notes, numbered without gaps, and whom they are made out to."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant


class BillingProfile(models.Model):
    """What stands on the next invoice; those that are issued keep what they have."""

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    customer = models.JSONField()  # tenants.billing.invoices.document.Party
    tax_name = models.CharField(max_length=40)  # e.g. VAT; "": none
    tax_basis_points = models.PositiveIntegerField()  # 1,900 are 19%
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_billing_profile"
        constraints: ClassVar = [
            RowSecurity(name="billing_profile_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return str(self.tenant_id)


class Invoice(models.Model):
    """What an invoice says beside the ledger's figures, from which the rest is made each time."""

    pk = models.CompositePrimaryKey("tenant_id", "number")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    number = models.PositiveIntegerField()  # from 1, without gaps
    id = models.UUIDField()  # for pages
    name = models.CharField(max_length=60)  # the number as it is written
    kind = models.CharField(max_length=12)  # invoice or credit_note
    month = models.DateField()  # invoice: the month it is about; credit note: in which it is booked
    corrects = models.PositiveIntegerField(null=True)  # the number of an invoice; None: it is one
    head = models.JSONField()  # tenants.billing.invoices.document.Head
    total_micros = models.BigIntegerField()  # of a credit note below 0
    digest = models.BinaryField()  # SHA-256 of the document
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="invoice_tenant", privileges=APPEND_ONLY),
        ]
        indexes: ClassVar = [
            # Reader: the pages of invoices.
            models.Index(fields=["tenant", "-created_at", "-id"], name="invoice_newest"),
        ]

    def __str__(self) -> str:
        return self.name

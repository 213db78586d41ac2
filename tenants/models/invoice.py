"""Invoices and credit notes, numbered without gaps, and billing profiles."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant


class BillingProfile(models.Model):
    """The customer and tax of future invoices. Issued invoices keep their own."""

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    customer = models.JSONField()  # tenants.billing.invoices.document.InvoiceParty
    tax_name = models.CharField(max_length=40)  # for example VAT; "": none
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
    """The part of an invoice that is not in the ledger. The rest is rebuilt from the ledger."""

    pk = models.CompositePrimaryKey("tenant_id", "number")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    number = models.PositiveIntegerField()  # from 1, without gaps
    id = models.UUIDField()  # for pagination
    name = models.CharField(max_length=60)  # the number as printed
    kind = models.CharField(max_length=12)  # invoice or credit_note
    # Invoice: the billed month; credit note: the month in which it is posted.
    month = models.DateField()
    # The number of an invoice; None: this is an invoice.
    corrects = models.PositiveIntegerField(null=True)
    head = models.JSONField()  # tenants.billing.invoices.document.InvoiceHeader
    total_micros = models.BigIntegerField()  # negative for a credit note
    digest = models.BinaryField()  # SHA-256 of the document
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="invoice_tenant", privileges=APPEND_ONLY),
        ]
        indexes: ClassVar = [
            # Reader: pages of invoices.
            models.Index(fields=["tenant", "-created_at", "-id"], name="invoice_newest"),
        ]

    def __str__(self) -> str:
        return self.name

"""The ledger (accounts, transactions, entries), invoices and billing profiles.

All tables except the billing profiles are append-only. The database checks that all entries of a
transaction have the same currency, and that the entries which one statement inserts add up to zero
(see tenants/migrations/0002_keys_triggers_and_grants.py).
"""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant


class LedgerAccount(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "code", "currency")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    code = models.CharField(max_length=40)  # tenants.billing.ledger.accounts.LedgerAccountCode
    currency = models.CharField(max_length=3)

    class Meta:
        db_table = "tenants_ledger_account"
        constraints: ClassVar = [
            RowSecurity(name="ledger_account_tenant", privileges=APPEND_ONLY),
        ]

    def __str__(self) -> str:
        return f"{self.code} in {self.currency}"


class LedgerTransaction(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    # The cause of the transaction. For each cause, only one transaction can be posted.
    source_kind = models.CharField(max_length=16)  # tenants.billing.ledger.operations.SourceKind
    source_id = models.CharField(max_length=80)
    currency = models.CharField(max_length=3)
    day = models.DateField()  # of the usage; a late record keeps its own day
    month = models.DateField()  # the invoice month, by its first day
    memo = models.CharField(max_length=250)  # a description, for example "Seats of 2026-11-01"
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_ledger_transaction"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "source_kind", "source_id"], name="ledger_transaction_source"
            ),
            # The target of the entries' foreign key, which makes all entries have the same
            # currency.
            models.UniqueConstraint(
                fields=["tenant", "id", "currency"], name="ledger_transaction_currency"
            ),
            RowSecurity(name="ledger_transaction_tenant", privileges=APPEND_ONLY),
        ]
        indexes: ClassVar = [
            # Reader: invoices.
            models.Index(fields=["tenant", "month"], name="ledger_transaction_month"),
            # Reader: pages of the ledger.
            models.Index(fields=["tenant", "-created_at", "-id"], name="ledger_transaction_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.source_kind} {self.source_id}"


class LedgerEntry(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "transaction_id", "position")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    transaction_id = models.UUIDField()
    position = models.PositiveSmallIntegerField()  # from 1
    account = models.CharField(max_length=40)  # LedgerAccount.code
    currency = models.CharField(max_length=3)
    amount_micros = models.BigIntegerField()  # positive: debit; negative: credit
    # The line of usage, such as fast.prompt or fast.prompt.MODEL; "": the entry has no usage,
    # because it is the other side of the transaction.
    line = models.CharField(max_length=160)
    day = models.DateField()  # of the transaction
    quantity = models.BigIntegerField()  # tokens or seats; 0 if `line` is empty
    # The total quantity of the day and line, up to and including this entry.
    running = models.BigIntegerField()
    # For a million tokens, or for a seat and a month. Also 0 if the entry has no usage.
    price_micros = models.BigIntegerField()

    class Meta:
        db_table = "tenants_ledger_entry"
        constraints: ClassVar = [
            RowSecurity(name="ledger_entry_tenant", privileges=APPEND_ONLY),
        ]
        indexes: ClassVar = [
            # Reader: rating, which continues from the highest running total of a day's line.
            models.Index(fields=["tenant", "day", "line", "-running"], name="ledger_entry_running"),
        ]

    def __str__(self) -> str:
        return f"{self.account} {self.amount_micros}"


class BillingProfile(models.Model):
    """The customer and the tax of future invoices. A change does not affect issued invoices."""

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    customer = models.JSONField()  # tenants.billing.invoices.document.InvoiceParty
    tax_name = models.CharField(max_length=40)  # for example VAT; "": no tax
    tax_basis_points = models.PositiveIntegerField()  # hundredths of a percent: 1,900 are 19%
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
    number = models.PositiveIntegerField()  # from 1, without gaps; also counts credit notes
    id = models.UUIDField()  # for pagination
    name = models.CharField(max_length=80)  # the number as printed
    kind = models.CharField(max_length=12)  # invoice or credit_note
    # The first day of the billed month; for a credit note, of the month in which it is posted.
    month = models.DateField()
    # The number of the corrected invoice; None: this document is an invoice.
    corrects = models.PositiveIntegerField(null=True)
    head = models.JSONField()  # tenants.billing.invoices.document.InvoiceHeader
    total_micros = models.BigIntegerField()  # with tax; negative for a credit note
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

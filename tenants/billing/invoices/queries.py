"""Queries of invoices and credit notes.

A document is rebuilt from its stored header and the ledger, and checked against its stored digest.
Lists show only the stored values, without this check.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import msgspec
import structlog
from django.db.models import Sum
from django.utils.translation import gettext_noop

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, NotFound
from tenants.base.money import MICROS_PER_CENT
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Permission
from tenants.billing.invoices.billing_profile import read_billing_profile, read_issuer
from tenants.billing.invoices.document import (
    DocumentKind,
    InvoiceDocument,
    InvoiceHeader,
    InvoiceMismatch,
    InvoiceParty,
    InvoiceTax,
    LedgerTotals,
    UsageLine,
    build_document,
    encode_document,
)
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.operations import SourceKind
from tenants.models import Invoice, LedgerEntry, LedgerTransaction
from tenants.security.authorization.actor import Actor

_NOT_REPRODUCIBLE: Final = gettext_noop(
    "The ledger does not reproduce {name} as issued. Contact the operator of this installation."
)
logger = structlog.get_logger(__name__)


class InvoiceNotReproducible(Conflict):
    """The ledger does not reproduce the issued document: a bug, or changed data."""

    code = "invoice_not_reproducible"


@dataclass(frozen=True, slots=True)
class InvoiceRow:
    """An invoice or credit note in a list."""

    number: int  # from 1 in each tenant
    name: str  # the number as printed
    kind: DocumentKind
    month: date  # by its first day
    corrects: int | None  # number of the corrected invoice; None: this is an invoice
    currency: str
    total_micros: int  # negative for a credit note
    issued_on: date
    due_on: date
    sha256: str  # of the JSON document, in hexadecimal digits


@dataclass(frozen=True, slots=True)
class InvoiceView:
    """An invoice or credit note with its document."""

    number: int
    kind: DocumentKind
    document: InvoiceDocument
    corrected_cents: int  # corrected by credit notes, before tax

    @property
    def json(self) -> bytes:
        return encode_document(self.document)


@dataclass(frozen=True, slots=True)
class ProfileView:
    """Issuer, customer and tax of the next invoice."""

    customer: InvoiceParty
    tax: InvoiceTax
    issuer: InvoiceParty


def find_billing_profile(*, actor: Actor) -> ProfileView:
    """Return the billing profile. Up to two queries. Raises Forbidden."""
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        customer, tax = read_billing_profile(actor.tenant_id)
    return ProfileView(customer, tax, read_issuer())


def read_page_of_invoices(*, actor: Actor, limit: int, cursor: str | None) -> Page[InvoiceRow]:
    """Return a page of invoices and credit notes, newest first. One query.

    Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        invoices = Invoice.objects.filter(tenant_id=actor.tenant_id)
        rows = fetch_page_rows(invoices, limit=limit, after=decode_cursor(cursor))
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, _to_row)


def find_invoice(*, actor: Actor, number: int) -> InvoiceView:
    """Return one invoice or credit note. Raises Forbidden, NotFound, InvoiceNotReproducible."""
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        row = Invoice.objects.filter(tenant_id=actor.tenant_id, number=number).first()
        if row is None:
            raise NotFound("This invoice does not exist.")
        usage_lines = (
            read_usage_lines(actor.tenant_id, row.month) if row.kind == DocumentKind.INVOICE else ()
        )
        return build_invoice_view(row, usage_lines)


def build_invoice_view(row: Invoice, usage_lines: Sequence[UsageLine]) -> InvoiceView:
    """Rebuild a document. Raises InvoiceNotReproducible.

    `usage_lines` are those of the invoice's month; a credit note has none. Must run inside the
    tenant's scope.
    """
    try:
        document = build_document(
            msgspec.convert(row.head, InvoiceHeader), usage_lines, _read_totals(row)
        )
    except InvoiceMismatch:
        document = None
    if document is None or hashlib.sha256(encode_document(document)).digest() != bytes(row.digest):
        logger.error(
            "invoice.invoice_not_reproducible", tenant_id=str(row.tenant_id), number=row.number
        )
        raise InvoiceNotReproducible(_NOT_REPRODUCIBLE, name=row.name)
    credit_notes = Invoice.objects.filter(tenant_id=row.tenant_id, corrects=row.number)
    corrected_cents = sum(-_read_totals(note).subtotal_cents for note in credit_notes)
    return InvoiceView(row.number, DocumentKind(row.kind), document, corrected_cents)


def read_usage_lines(tenant_id: TenantId, month: date) -> list[UsageLine]:
    """Return a month's entries for usage and seats, summed by line, day and price. One query.

    Must run inside the tenant's scope.
    """
    transactions = LedgerTransaction.objects.filter(
        tenant_id=tenant_id,
        month=month,
        source_kind__in=(SourceKind.USAGE, SourceKind.SEATS),
    )
    sums = (
        LedgerEntry.objects.filter(
            tenant_id=tenant_id, transaction_id__in=transactions.values("id")
        )
        .exclude(line="")
        .values_list("line", "day", "price_micros")
        .annotate(quantity=Sum("quantity"), amount_micros=Sum("amount_micros"))
    )
    # Only entries of revenue have a line. They are credits, so their amounts are negative.
    return [
        UsageLine(line, day, int(quantity), price, -int(amount))
        for line, day, price, quantity, amount in sums
    ]


def _read_totals(row: Invoice) -> LedgerTotals:
    """Return the amounts that were posted with the document."""
    # The values of DocumentKind are also values of SourceKind.
    transaction = LedgerTransaction.objects.get(
        tenant_id=row.tenant_id, source_kind=row.kind, source_id=str(row.number)
    )
    entries = LedgerEntry.objects.filter(tenant_id=row.tenant_id, transaction_id=transaction.id)
    return compute_ledger_totals(entries.values_list("account", "amount_micros"))


def compute_ledger_totals(entries: Iterable[tuple[str, int]]) -> LedgerTotals:
    """Return the amounts of an invoice or credit note from the entries of its transaction. Pure.

    An entry is an account and its micros. Each account has at most one entry.
    """
    by_account = dict(entries)
    # These accounts get only whole cents from documents, so the divisions have no remainder.
    total = by_account.get(LedgerAccountCode.RECEIVABLE, 0) // MICROS_PER_CENT
    credit = by_account.get(LedgerAccountCode.CREDITS, 0) // MICROS_PER_CENT
    tax = -(by_account.get(LedgerAccountCode.TAX, 0) // MICROS_PER_CENT)
    return LedgerTotals(subtotal_cents=total + credit - tax, credit_cents=credit, tax_cents=tax)


def _to_row(row: Invoice) -> InvoiceRow:
    head = msgspec.convert(row.head, InvoiceHeader)
    return InvoiceRow(
        number=row.number,
        name=row.name,
        kind=DocumentKind(row.kind),
        month=row.month,
        corrects=row.corrects,
        currency=head.currency,
        total_micros=row.total_micros,
        issued_on=date.fromisoformat(head.issued_on),
        due_on=date.fromisoformat(head.due_on),
        sha256=bytes(row.digest).hex(),
    )

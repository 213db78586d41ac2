"""Presentation of invoices in the reader's language, with the issued figures."""

from dataclasses import dataclass
from datetime import date

from django.utils.formats import number_format

from console.views.billing.presenters import name_of
from tenants.base.billing_periods import ONE_DAY
from tenants.base.money import MICROS_PER_CENT
from tenants.billing.invoices.document import (
    SEATS,
    DocumentKind,
    InvoiceHeader,
    InvoiceLine,
    InvoiceTax,
)
from tenants.billing.invoices.queries import InvoiceView
from tenants.billing.pricing import LINES


@dataclass(frozen=True, slots=True)
class ShownLine:
    name: str
    used_in: date
    quantity: int
    is_tokens: bool  # priced per million
    is_seats: bool  # priced by the month, counted by the day
    price_micros: int
    amount_micros: int


@dataclass(frozen=True, slots=True)
class InvoicePage:
    head: InvoiceHeader
    is_invoice: bool
    month: date
    issued_on: date
    due_on: date
    first: date  # first and last day of the period, both inclusive
    last: date
    lines: tuple[ShownLine, ...]
    subtotal_micros: int
    credit_micros: int  # credit used by this invoice
    tax_micros: int
    total_micros: int
    tax_percent: str  # such as 19 or 7.7
    corrected_micros: int  # by credit notes, before tax


def shown_document(invoice: InvoiceView) -> InvoicePage:
    document, head = invoice.document, invoice.document.head
    return InvoicePage(
        head=head,
        is_invoice=head.kind is DocumentKind.INVOICE,
        month=date.fromisoformat(head.month),
        issued_on=date.fromisoformat(head.issued_on),
        due_on=date.fromisoformat(head.due_on),
        first=date.fromisoformat(document.period_from),
        last=date.fromisoformat(document.period_until) - ONE_DAY,
        lines=tuple(_to_shown_line(each) for each in document.lines),
        subtotal_micros=document.subtotal_cents * MICROS_PER_CENT,
        credit_micros=document.credit_cents * MICROS_PER_CENT,
        tax_micros=document.tax_cents * MICROS_PER_CENT,
        total_micros=document.total_cents * MICROS_PER_CENT,
        tax_percent=percent_of(document.head.tax),
        corrected_micros=invoice.corrected_cents * MICROS_PER_CENT,
    )


def _to_shown_line(line: InvoiceLine) -> ShownLine:
    is_known = line.code == SEATS or line.code in LINES
    return ShownLine(
        name=name_of(line.code) if is_known else line.description,
        used_in=date.fromisoformat(line.used_in),
        quantity=line.quantity,
        is_tokens=line.code in LINES,
        is_seats=line.code == SEATS,
        price_micros=line.price_micros,
        amount_micros=line.amount_cents * MICROS_PER_CENT,
    )


def percent_of(tax: InvoiceTax) -> str:
    """Return the tax rate in percent, such as 19 or 7.7."""
    whole, rest = divmod(tax.basis_points, 100)
    return number_format(f"{whole}.{rest:02}".rstrip("0").rstrip("."), use_l10n=True)

"""Invoices and credit notes: their list, and each document as a page, a PDF or JSON."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import wraps
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.downloads.file_response import file_response
from console.layout.htmx import render_page
from console.layout.lists.list_page import ListPage
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.billing.presenters import name_of
from console.views.billing.tabs import tabs
from tenants.base.billing_periods import ONE_DAY
from tenants.base.money import MICROS_PER_CENT
from tenants.base.permissions import Permission
from tenants.billing.invoices.billing_profile import find_logo
from tenants.billing.invoices.document import (
    SEATS,
    DocumentKind,
    InvoiceHeader,
    InvoiceLine,
    InvoiceTax,
)
from tenants.billing.invoices.einvoice import list_missing_fields
from tenants.billing.invoices.pdf import render_pdf
from tenants.billing.invoices.queries import (
    InvoiceNotReproducible,
    InvoiceView,
    find_invoice,
    read_page_of_invoices,
)
from tenants.billing.pricing import parse_line

_PAGE: Final = "console/billing/invoice.html"
_NOT_REPRODUCIBLE_PAGE: Final = "console/billing/invoice_not_reproducible.html"
# An invoice's PDF contains an e-invoice only if the invoice has all of these fields. The names of
# the fields are those that list_missing_fields returns.
_EINVOICE_FIELDS: Final[dict[str, Promise]] = {
    "issuer_country": _("the issuer’s country"),
    "issuer_tax_id": _("the issuer’s tax ID"),
    "customer_country": _("the recipient’s country"),
    "tax": _("a tax rate"),
    "lines": _("usage"),
}
_View = Callable[[HttpRequest, CurrentMember, int], HttpResponse]


_INVOICES: Final = ListPage(
    template="console/billing/invoices.html",
    query=lambda list_query: read_page_of_invoices(
        actor=list_query.actor, limit=list_query.limit, cursor=list_query.cursor
    ),
    page_rows=50,
    context=lambda _query, _page: {"tabs": tabs("billing-invoices")},
)


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def invoices(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _INVOICES.render(request, member)


def _handle_unreproducible(view: _View) -> _View:
    """Show an error page if the ledger no longer reproduces the document as it was issued."""

    @wraps(view)
    def guarded(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
        try:
            return view(request, member, number)
        except InvoiceNotReproducible:
            return render_page(
                request, member, _NOT_REPRODUCIBLE_PAGE, {"number": number}, status=409
            )

    return guarded


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
@_handle_unreproducible
def invoice(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
    invoice_view = find_invoice(actor=member.actor, number=number)
    missing_fields = list_missing_fields(invoice_view.document)
    context = {
        "url_number": number,  # the document shows `head.number`, such as ACME-000001
        "document": present_document(invoice_view),
        "missing_fields": ", ".join(str(_EINVOICE_FIELDS[name]) for name in missing_fields),
        "sha256": hashlib.sha256(invoice_view.json).hexdigest(),  # of the JSON file
    }
    return render_page(request, member, _PAGE, context)


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
@_handle_unreproducible
def pdf(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
    document = find_invoice(actor=member.actor, number=number).document
    return file_response(
        render_pdf(document, logo=find_logo()),
        name=f"{document.head.number}.pdf",
        content_type="application/pdf",
    )


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
@_handle_unreproducible
def as_json(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
    invoice_view = find_invoice(actor=member.actor, number=number)
    name = f"{invoice_view.document.head.number}.json"
    return file_response(invoice_view.json, name=name, content_type="application/json")


@dataclass(frozen=True, slots=True)
class InvoiceLineRow:
    name: str
    used_in: date  # first day of the month of the usage
    quantity: int  # tokens, or days of seats
    is_tokens: bool  # True: `price_micros` is for a million tokens
    is_seats: bool  # True: `price_micros` is for a seat and month
    price_micros: int
    amount_micros: int  # rounded to whole cents


@dataclass(frozen=True, slots=True)
class InvoicePage:
    """A document with dates and micros, for the template."""

    head: InvoiceHeader
    is_invoice: bool  # False: a credit note
    month: date  # its first day
    issued_on: date
    due_on: date
    first: date  # first and last day of the period, both inclusive
    last: date
    lines: tuple[InvoiceLineRow, ...]
    subtotal_micros: int
    credit_micros: int  # credit used by this invoice
    tax_micros: int
    total_micros: int
    tax_percent: str  # such as 19 or 7.7
    corrected_micros: int  # amount that credit notes have corrected, before tax


def present_document(invoice: InvoiceView) -> InvoicePage:
    document, head = invoice.document, invoice.document.head
    return InvoicePage(
        head=head,
        is_invoice=head.kind is DocumentKind.INVOICE,
        month=date.fromisoformat(head.month),
        issued_on=date.fromisoformat(head.issued_on),
        due_on=date.fromisoformat(head.due_on),
        first=date.fromisoformat(document.period_from),
        last=date.fromisoformat(document.period_until) - ONE_DAY,
        lines=tuple(_to_row(line) for line in document.lines),
        subtotal_micros=document.subtotal_cents * MICROS_PER_CENT,
        credit_micros=document.credit_cents * MICROS_PER_CENT,
        tax_micros=document.tax_cents * MICROS_PER_CENT,
        total_micros=document.total_cents * MICROS_PER_CENT,
        tax_percent=percent_of(document.head.tax),
        corrected_micros=invoice.corrected_cents * MICROS_PER_CENT,
    )


def _to_row(line: InvoiceLine) -> InvoiceLineRow:
    is_tokens = parse_line(line.code) is not None  # False: seats or another line
    return InvoiceLineRow(
        name=name_of(line.code) if is_tokens or line.code == SEATS else line.description,
        used_in=date.fromisoformat(line.used_in),
        quantity=line.quantity,
        is_tokens=is_tokens,
        is_seats=line.code == SEATS,
        price_micros=line.price_micros,
        amount_micros=line.amount_cents * MICROS_PER_CENT,
    )


def percent_of(tax: InvoiceTax) -> str:
    """Return the tax rate in percent, such as 19 or 7.7, in the format of the page's language."""
    whole, rest = divmod(tax.basis_points, 100)
    return number_format(f"{whole}.{rest:02}".rstrip("0").rstrip("."), use_l10n=True)

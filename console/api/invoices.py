"""Invoices over REST, as JSON and PDF.

They are generated from the ledger. The JSON has the same bytes each time; the PDF also has the
seller's current logo.
"""

import datetime
from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Path, Query, Router
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, documents_permissions
from console.api.base_schema import ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from console.downloads.file_response import file_response
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.billing.invoices.billing_profile import find_logo
from tenants.billing.invoices.document import DocumentKind
from tenants.billing.invoices.pdf import render_pdf
from tenants.billing.invoices.queries import InvoiceRow, find_invoice, read_page_of_invoices

router = Router(tags=["invoices"])
_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


class InvoiceResponse(ResponseSchema):
    number: int  # identifies the document in this API
    name: str  # as printed on the document
    kind: DocumentKind
    month: datetime.date  # the billed month, given by its first day
    corrects: int | None  # number of the corrected invoice; null: this is an invoice
    currency: Currency
    total_micros: int  # negative for a credit note
    issued_on: datetime.date
    due_on: datetime.date
    sha256: str  # of the JSON document


class InvoicePageResponse(PageResponse):
    items: Items[InvoiceResponse]  # newest first


class InvoicePartyResponse(ResponseSchema):
    name: str
    address: list[str]
    tax_id: str
    email: str
    country: str = ""  # ISO 3166-1 alpha-2; "": unknown


class BankAccountResponse(ResponseSchema):
    iban: str
    bic: str  # "": none
    bank: str  # name; "": none


class InvoiceTaxResponse(ResponseSchema):
    name: str  # "": none
    basis_points: int


class InvoiceHeaderResponse(ResponseSchema):
    number: str
    kind: DocumentKind
    corrects: str  # number of the corrected invoice; "": this is an invoice
    month: datetime.date
    issued_on: datetime.date
    due_on: datetime.date
    currency: Currency
    issuer: InvoicePartyResponse
    customer: InvoicePartyResponse
    tax: InvoiceTaxResponse
    payment: list[str]
    reason: str
    bank: BankAccountResponse | None = None  # null: no account is set, or it is a credit note


class InvoiceLineResponse(ResponseSchema):
    code: str
    description: str
    used_in: datetime.date  # month of use; if it precedes the billed month, records arrived late
    quantity: int
    unit: str
    price_micros: int
    price_for: Annotated[int, Field(ge=1)]  # price_micros is the price of this many units
    amount_cents: int


class InvoiceDocumentResponse(ResponseSchema):
    """The issued document: canonical JSON, sorted keys, no spaces. The list has its SHA-256."""

    document_schema: Annotated[int, Field(alias="schema")]
    head: InvoiceHeaderResponse
    period_from: datetime.date  # half-open interval, UTC
    period_until: datetime.date
    lines: list[InvoiceLineResponse]
    subtotal_cents: int
    credit_cents: int
    tax_cents: int
    total_cents: int


@router.get(
    "",
    response=InvoicePageResponse,
    summary="List invoices and credit notes.",
    openapi_extra=documents_permissions(Permission.READ_BILLING),
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[InvoiceRow]:
    return read_page_of_invoices(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.get(
    "/{number}",
    response=InvoiceDocumentResponse,
    summary="Get an invoice as JSON, byte for byte as issued.",
    openapi_extra=documents_permissions(Permission.READ_BILLING),
)
def find(request: AuthenticatedRequest, number: _Number) -> Any:
    invoice = find_invoice(actor=actor_of(request), number=number)
    return HttpResponse(invoice.json, content_type="application/json")


@router.get(
    "/{number}/pdf",
    response={200: None},
    summary="Get an invoice as PDF.",
    openapi_extra=documents_permissions(Permission.READ_BILLING),
)
def pdf(request: AuthenticatedRequest, number: _Number) -> Any:
    invoice = find_invoice(actor=actor_of(request), number=number)
    name = f"{invoice.document.head.number}.pdf"
    return file_response(
        render_pdf(invoice.document, logo=find_logo()), name=name, content_type="application/pdf"
    )

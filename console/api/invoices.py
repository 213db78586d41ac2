"""Invoices over REST, as JSON and PDF.

Both formats are built from the ledger for each request. The JSON has the same bytes each time. The
PDF can change, because it contains the seller's current logo.
"""

import datetime
from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Path, Query, Router
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
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
_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]  # fits Postgres' integers


class InvoiceResponse(ResponseSchema):
    number: int  # identifies the document in this API
    name: str  # the number that is printed on the document
    kind: DocumentKind
    month: datetime.date  # the billed month, given by its first day
    corrects: int | None  # `number` of the corrected invoice; null: this is an invoice
    currency: Currency
    total_micros: int  # with tax; negative for a credit note
    issued_on: datetime.date
    due_on: datetime.date
    sha256: str  # of the JSON document, in hex


class InvoicePageResponse(PageResponse):
    items: Items[InvoiceResponse]  # newest first


class InvoicePartyResponse(ResponseSchema):
    name: str
    address: list[str]  # postal address, one string per line
    tax_id: str  # "": none
    email: str
    country: str = ""  # ISO 3166-1 alpha-2; "": unknown


class BankAccountResponse(ResponseSchema):
    iban: str
    bic: str  # "": none
    bank: str  # name; "": none


class InvoiceTaxResponse(ResponseSchema):
    name: str  # "": no tax
    basis_points: int  # hundredths of a percent


class InvoiceHeaderResponse(ResponseSchema):
    number: str  # as printed on the document
    kind: DocumentKind
    corrects: str  # printed number of the corrected invoice; "": this is an invoice
    month: datetime.date  # the billed month, given by its first day
    issued_on: datetime.date
    due_on: datetime.date
    currency: Currency
    issuer: InvoicePartyResponse
    customer: InvoicePartyResponse
    tax: InvoiceTaxResponse
    payment: list[str]  # payment instructions, one string per line
    reason: str  # of a credit note; "" for an invoice
    bank: BankAccountResponse | None = None  # null: no account is set, or this is a credit note


class InvoiceLineResponse(ResponseSchema):
    code: str  # such as seats or fast.prompt
    description: str
    # The month of use. It is before the billed month if the usage was recorded late.
    used_in: datetime.date
    quantity: int  # in `unit`
    unit: str
    price_micros: int  # the price of `price_for` units; for seats: of a seat for a month
    price_for: Annotated[int, Field(ge=1)]
    amount_cents: int


class InvoiceDocumentResponse(ResponseSchema):
    """The issued document as canonical JSON: sorted names, no spaces.

    `InvoiceResponse.sha256` is the SHA-256 of these bytes.
    """

    document_schema: Annotated[int, Field(alias="schema")]  # version of the format
    head: InvoiceHeaderResponse
    period_from: datetime.date  # first day, in UTC
    period_until: datetime.date  # exclusive
    lines: list[InvoiceLineResponse]
    subtotal_cents: int  # the sum of the lines
    credit_cents: int  # credits that were used
    tax_cents: int
    total_cents: int


@router.get(
    "",
    response=InvoicePageResponse,
    summary="List invoices and credit notes.",
    openapi_extra=document_permissions(Permission.READ_BILLING),
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[InvoiceRow]:
    return read_page_of_invoices(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.get(
    "/{number}",
    response=InvoiceDocumentResponse,
    summary="Get an invoice as JSON, byte for byte as issued.",
    openapi_extra=document_permissions(Permission.READ_BILLING),
)
def find(request: AuthenticatedRequest, number: _Number) -> Any:
    invoice = find_invoice(actor=actor_of(request), number=number)
    return HttpResponse(invoice.json, content_type="application/json")


@router.get(
    "/{number}/pdf",
    response={200: None},
    summary="Get an invoice as PDF.",
    openapi_extra=document_permissions(Permission.READ_BILLING),
)
def pdf(request: AuthenticatedRequest, number: _Number) -> Any:
    invoice = find_invoice(actor=actor_of(request), number=number)
    name = f"{invoice.document.head.number}.pdf"
    return file_response(
        render_pdf(invoice.document, logo=find_logo()), name=name, content_type="application/pdf"
    )

"""Invoices over REST: as JSON and as PDF, made of the ledger and the same bytes each time."""

import datetime
from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Path, Query, Router
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, documents_permissions
from console.api.base_schema import ResponseSchema
from console.api.pagination import PageQuery, PageResponse
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.billing.invoices.document import DocumentKind
from tenants.billing.invoices.pdf import render
from tenants.billing.invoices.queries import InvoiceRow, find_invoice, page_of_invoices

router = Router(tags=["invoices"])
_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


class InvoiceResponse(ResponseSchema):
    number: int  # in the addresses here
    name: str  # as it stands on the document
    kind: DocumentKind
    month: datetime.date  # that it is about, by its first day
    corrects: int | None  # the invoice's number; null: it is one
    currency: Currency
    total_micros: int  # of a credit note below 0
    issued_on: datetime.date
    due_on: datetime.date
    sha256: str  # of the JSON document


class InvoicePageResponse(PageResponse):
    rows: list[InvoiceResponse]  # newest first


class InvoicePartyResponse(ResponseSchema):
    name: str
    address: list[str]
    tax_id: str
    email: str


class InvoiceTaxResponse(ResponseSchema):
    name: str  # "": none
    basis_points: int


class InvoiceHeaderResponse(ResponseSchema):
    number: str
    kind: DocumentKind
    corrects: str
    month: datetime.date
    issued_on: datetime.date
    due_on: datetime.date
    currency: Currency
    issuer: InvoicePartyResponse
    customer: InvoicePartyResponse
    tax: InvoiceTaxResponse
    payment: list[str]
    reason: str


class InvoiceLineResponse(ResponseSchema):
    code: str
    description: str
    used_in: datetime.date  # a month; an earlier one's records came late
    quantity: int
    unit: str
    price_micros: int
    price_for: Annotated[int, Field(ge=1)]  # so many of the unit
    amount_cents: int


class InvoiceDocumentResponse(ResponseSchema):
    """Written with its keys in order and without blanks: its SHA-256 is the list's."""

    document_schema: Annotated[int, Field(alias="schema")]
    head: InvoiceHeaderResponse
    period_from: datetime.date  # half-open, UTC
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
    return page_of_invoices(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.get(
    "/{number}",
    response=InvoiceDocumentResponse,
    summary="An invoice as JSON, byte for byte as it was issued.",
    openapi_extra=documents_permissions(Permission.READ_BILLING),
)
def find(request: AuthenticatedRequest, number: _Number) -> Any:
    invoice = find_invoice(actor=actor_of(request), number=number)
    return HttpResponse(invoice.json, content_type="application/json")


@router.get(
    "/{number}/pdf",
    response={200: None},
    summary="An invoice as PDF.",
    openapi_extra=documents_permissions(Permission.READ_BILLING),
)
def pdf(request: AuthenticatedRequest, number: _Number) -> Any:
    invoice = find_invoice(actor=actor_of(request), number=number)
    return _pdf(invoice.document.head.number, render(invoice.document))


def _pdf(name: str, body: bytes) -> HttpResponse:
    response = HttpResponse(body, content_type="application/pdf")
    response["Content-Disposition"] = f'attachment; filename="{name}.pdf"'
    return response

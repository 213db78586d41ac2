"""Invoices over REST: as JSON and as PDF, made of the ledger and the same bytes each time."""

import datetime
from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Path, Query, Router
from pydantic import Field

from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer
from console.api.pagination import PageAnswer, Paged
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.billing.invoices.document import Kind
from tenants.billing.invoices.pdf import render
from tenants.billing.invoices.queries import InvoiceRow, find_invoice, page_of_invoices

router = Router(tags=["invoices"])
_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


class Invoice(Answer):
    number: int  # in the addresses here
    name: str  # as it stands on the document
    kind: Kind
    month: datetime.date  # that it is about, by its first day
    corrects: int | None  # the invoice's number; null: it is one
    currency: Currency
    total_micros: int  # of a credit note below 0
    issued_on: datetime.date
    due_on: datetime.date
    sha256: str  # of the JSON document


class InvoicePage(PageAnswer):
    rows: list[Invoice]  # newest first


class Party(Answer):
    name: str
    address: list[str]
    tax_id: str
    email: str


class Tax(Answer):
    name: str  # "": none
    basis_points: int


class Head(Answer):
    number: str
    kind: Kind
    corrects: str
    month: datetime.date
    issued_on: datetime.date
    due_on: datetime.date
    currency: Currency
    issuer: Party
    customer: Party
    tax: Tax
    payment: list[str]
    reason: str


class Line(Answer):
    code: str
    description: str
    used_in: datetime.date  # a month; an earlier one's records came late
    quantity: int
    unit: str
    price_micros: int
    price_for: Annotated[int, Field(ge=1)]  # so many of the unit
    amount_cents: int


class Document(Answer):
    """Written with its keys in order and without blanks: its SHA-256 is the list's."""

    document_schema: Annotated[int, Field(alias="schema")]
    head: Head
    period_from: datetime.date  # half-open, UTC
    period_until: datetime.date
    lines: list[Line]
    subtotal_cents: int
    credit_cents: int
    tax_cents: int
    total_cents: int


@router.get(
    "",
    response=InvoicePage,
    summary="List invoices and credit notes.",
    openapi_extra=open_to(Permission.READ_BILLING),
)
def list_all(request: ApiRequest, page: Query[Paged]) -> Page[InvoiceRow]:
    return page_of_invoices(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.get(
    "/{number}",
    response=Document,
    summary="An invoice as JSON, byte for byte as it was issued.",
    openapi_extra=open_to(Permission.READ_BILLING),
)
def find(request: ApiRequest, number: _Number) -> Any:
    invoice = find_invoice(actor=actor_of(request), number=number)
    return HttpResponse(invoice.json, content_type="application/json")


@router.get(
    "/{number}/pdf",
    response={200: None},
    summary="An invoice as PDF.",
    openapi_extra=open_to(Permission.READ_BILLING),
)
def pdf(request: ApiRequest, number: _Number) -> Any:
    invoice = find_invoice(actor=actor_of(request), number=number)
    return _pdf(invoice.document.head.number, render(invoice.document))


def _pdf(name: str, body: bytes) -> HttpResponse:
    response = HttpResponse(body, content_type="application/pdf")
    response["Content-Disposition"] = f'attachment; filename="{name}.pdf"'
    return response

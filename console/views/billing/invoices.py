"""Invoices and credit notes: the list, the documents and their files."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.downloads.file_response import file_response
from console.layout.htmx import render_page
from console.layout.lists.list_page import ListPage
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.billing.invoice_presenters import shown_document
from console.views.billing.tabs import tabs
from tenants.base.permissions import Permission
from tenants.billing.invoices.pdf import render
from tenants.billing.invoices.queries import InvoiceNotReproducible, find_invoice, page_of_invoices

_PAGE: Final = "console/billing/invoice.html"
_LOST: Final = "console/billing/invoice_not_reproducible.html"
_View = Callable[[HttpRequest, CurrentMember, int], HttpResponse]


_INVOICES: Final = ListPage(
    template="console/billing/invoices.html",
    query=lambda asked: page_of_invoices(actor=asked.actor, limit=asked.limit, cursor=asked.cursor),
    page_rows=50,
    context=lambda _asked, _page: {"tabs": tabs("billing-invoices")},
)


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def invoices(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _INVOICES.render(request, member)


def _answer_unreproducible(view: _View) -> _View:
    """Show an error page if the ledger no longer reproduces the document as it was issued."""

    @wraps(view)
    def guarded(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
        try:
            return view(request, member, number)
        except InvoiceNotReproducible:
            return render_page(request, member, _LOST, {"number": number}, status=409)

    return guarded


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
@_answer_unreproducible
def invoice(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
    found = find_invoice(actor=member.actor, number=number)
    context = {
        "number": number,
        "shown": shown_document(found),
        "sha256": hashlib.sha256(found.json).hexdigest(),
    }
    return render_page(request, member, _PAGE, context)


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
@_answer_unreproducible
def pdf(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
    found = find_invoice(actor=member.actor, number=number).document
    return file_response(
        render(found), name=f"{found.head.number}.pdf", content_type="application/pdf"
    )


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
@_answer_unreproducible
def as_json(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
    found = find_invoice(actor=member.actor, number=number)
    name = f"{found.document.head.number}.json"
    return file_response(found.json, name=name, content_type="application/json")

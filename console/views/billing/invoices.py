"""Invoices and credit notes: the list, the documents and their files."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from console.downloads.file_response import file_response
from console.layout.htmx import render_page
from console.layout.lists.pagination import page_links
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.billing.invoice_presenters import shown_document
from console.views.billing.tabs import tabs
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.billing.invoices.pdf import render
from tenants.billing.invoices.queries import InvoiceNotReproducible, find_invoice, page_of_invoices

_LIST: Final = "console/billing/invoices.html"
_PAGE: Final = "console/billing/invoice.html"
_LOST: Final = "console/billing/invoice_not_reproducible.html"
_View = Callable[[HttpRequest, CurrentMember, int], HttpResponse]
_LIMIT: Final = 50


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def invoices(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    cursor = request.GET.get("cursor") or None
    try:
        page = page_of_invoices(actor=member.actor, limit=_LIMIT, cursor=cursor)
    except InvalidValue:  # an invalid cursor
        return redirect("console:billing-invoices")
    context = {
        "rows": page.rows,
        "turning": page_links(request, page),
        "tabs": tabs("billing-invoices"),
    }
    return render_page(request, member, _LIST, context)


def _reproducible(view: _View) -> _View:
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
@_reproducible
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
@_reproducible
def pdf(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
    found = find_invoice(actor=member.actor, number=number).document
    return file_response(
        render(found), name=f"{found.head.number}.pdf", content_type="application/pdf"
    )


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
@_reproducible
def as_json(request: HttpRequest, member: CurrentMember, number: int) -> HttpResponse:
    found = find_invoice(actor=member.actor, number=number)
    name = f"{found.document.head.number}.json"
    return file_response(found.json, name=name, content_type="application/json")

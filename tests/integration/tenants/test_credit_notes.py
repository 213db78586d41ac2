"""Credit notes: the refunded part of an invoice, and its tax."""

import pytest

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.money import MICROS_PER_CENT
from tenants.billing.invoices.billing_profile import set_billing_profile
from tenants.billing.invoices.document import DocumentKind, InvoiceParty, InvoiceTax
from tenants.billing.invoices.operations import issue_credit_note, issue_due_invoices
from tenants.billing.invoices.queries import InvoiceView, find_invoice
from tenants.models import Tenant
from tests.fakes.billing import (
    AFTER,
    LARGE_USAGE,
    OCTOBER,
    ingest_completion,
    make_old_customer,
    read_balances,
)
from tests.fixtures.companies import Company


@pytest.fixture
def company() -> Company:
    return make_old_customer(OCTOBER)


def issue_invoice(company: Company) -> InvoiceView:
    issue_due_invoices(company.tenant_id, now=AFTER)
    return read_invoice(company)


def read_invoice(company: Company, number: int = 1) -> InvoiceView:
    return find_invoice(actor=company.administrator.actor, number=number)


def test_a_credit_note_has_the_next_number_and_reduces_the_receivable(company: Company) -> None:
    set_billing_profile(
        actor=company.platform,
        customer=InvoiceParty("I"),
        tax=InvoiceTax("VAT", 1_900),  # basis points: 19%
        now=OCTOBER,
    )
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    issue_invoice(company)
    receivable_before = read_balances(company.tenant_id)["receivable"]

    note = issue_credit_note(
        actor=company.platform, number=1, net_cents=100, reason="An outage.", now=AFTER
    )

    document = note.document
    assert (note.number, document.head.kind) == (2, DocumentKind.CREDIT_NOTE)
    assert (document.subtotal_cents, document.tax_cents, document.total_cents) == (-100, -19, -119)
    assert (
        read_balances(company.tenant_id)["receivable"] == receivable_before - 119 * MICROS_PER_CENT
    )
    assert read_invoice(company).corrected_cents == 100


def test_invoices_and_credit_notes_have_room_for_the_longest_slug_and_reason(
    company: Company,
) -> None:
    slug = company.slug.ljust(63, "x")
    with tenant_scope(company.tenant_id):
        Tenant.objects.filter(id=company.tenant_id).update(slug=slug)
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    issue_invoice(company)

    note = issue_credit_note(
        actor=company.platform, number=1, net_cents=100, reason="x" * 150, now=AFTER
    )

    assert note.document.head.number == f"{slug.upper()}-000002"


def test_credit_notes_cannot_exceed_the_invoices_net_amount(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    issue_invoice(company)
    net_cents = read_invoice(company).document.subtotal_cents
    issue_credit_note(
        actor=company.platform, number=1, net_cents=net_cents, reason="All.", now=AFTER
    )

    with pytest.raises(Conflict):
        issue_credit_note(actor=company.platform, number=1, net_cents=1, reason="More.", now=AFTER)
    with pytest.raises(Conflict):  # number 2 is the credit note
        issue_credit_note(actor=company.platform, number=2, net_cents=1, reason="It.", now=AFTER)


@pytest.mark.parametrize("basis_points", [1_900, 770, 2_500])
def test_credit_notes_for_a_whole_invoice_refund_its_exact_tax(
    company: Company, basis_points: int
) -> None:
    tax = InvoiceTax("VAT", basis_points)
    set_billing_profile(actor=company.platform, customer=InvoiceParty("I"), tax=tax, now=OCTOBER)
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    document = issue_invoice(company).document
    small_parts = [3, 3, 7, 1]
    remainder = document.subtotal_cents - sum(small_parts)

    notes = [
        issue_credit_note(actor=company.platform, number=1, net_cents=part, reason="x", now=AFTER)
        for part in (*small_parts, remainder)
    ]

    assert sum(note.document.tax_cents for note in notes) == -document.tax_cents
    assert "receivable" not in read_balances(company.tenant_id)


def test_a_credit_note_needs_a_reason(company: Company) -> None:
    with pytest.raises(InvalidValue):
        issue_credit_note(actor=company.platform, number=1, net_cents=1, reason=" ", now=AFTER)


def test_a_customer_cannot_issue_a_credit_note(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    issue_invoice(company)

    with pytest.raises(Forbidden):
        issue_credit_note(
            actor=company.administrator.actor, number=1, net_cents=1, reason="x", now=AFTER
        )


def test_a_failed_credit_note_uses_no_number(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    issue_invoice(company)
    with pytest.raises(Conflict):
        issue_credit_note(
            actor=company.platform, number=1, net_cents=10**9, reason="Much.", now=AFTER
        )

    note = issue_credit_note(
        actor=company.platform, number=1, net_cents=1, reason="Less.", now=AFTER
    )

    assert note.number == 2

"""Invoices are reproduced from the ledger, or not shown if the ledger or the digest was changed."""

import secrets
from typing import Any

import pytest

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.billing.invoices.operations import issue_credit_note, issue_due_invoices
from tenants.billing.invoices.pdf import render_pdf
from tenants.billing.invoices.queries import InvoiceNotReproducible, InvoiceView, find_invoice
from tenants.billing.ledger.credits import grant_credit
from tenants.billing.rating.operations import rate_tenant
from tenants.models import Invoice, LedgerAccount, LedgerEntry, LedgerTransaction
from tests.fakes.billing import AFTER, LARGE_USAGE, OCTOBER, ingest_completion, make_old_customer
from tests.fixtures.companies import Company, make_company


@pytest.fixture
def company() -> Company:
    return make_old_customer(OCTOBER)


def issue_invoices(company: Company) -> list[str]:
    rate_tenant(company.tenant_id, now=AFTER)
    return issue_due_invoices(company.tenant_id, now=AFTER)


def read_invoice(company: Company, number: int = 1) -> InvoiceView:
    return find_invoice(actor=company.administrator.actor, number=number)


def test_an_invoice_is_rendered_to_the_same_bytes_each_time(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    issue_invoices(company)

    first, second = read_invoice(company), read_invoice(company)

    assert first.json == second.json
    assert render_pdf(first.document) == render_pdf(second.document)


def test_a_restored_ledger_gives_the_same_invoices(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    grant_credit(actor=company.platform, amount_micros=100_000, reason="Welcome.", now=OCTOBER)
    issue_invoices(company)
    issue_credit_note(
        actor=company.platform, number=1, net_cents=10, reason="An outage.", now=AFTER
    )

    restored_company = restore_ledger(company)

    for number in (1, 2):
        invoice = read_invoice(company, number)
        restored = find_invoice(actor=restored_company.platform, number=number)
        assert restored.json == invoice.json
        assert render_pdf(restored.document) == render_pdf(invoice.document)


def restore_ledger(source: Company, **changes_of_invoice: Any) -> Company:
    """Copy ledger and invoices, as a restored backup would, into a new company."""
    target = make_company("restored", {})
    for model in (LedgerAccount, LedgerTransaction, LedgerEntry):
        copy_rows(model, source, target)
    copy_rows(Invoice, source, target, **changes_of_invoice)
    return target


def copy_rows(model: Any, source: Company, target: Company, **changes: Any) -> None:
    """Copy the source's rows into the target in random order, with changed fields."""
    with tenant_scope(source.tenant_id):
        rows = list(model.objects.filter(tenant_id=source.tenant_id).values())
    for row in rows:
        row.pop("pk", None)  # a composite key that contains the source's tenant
        row |= {"tenant_id": target.tenant_id, **changes}
    secrets.SystemRandom().shuffle(rows)
    with tenant_scope(target.tenant_id):
        model.objects.bulk_create([model(**row) for row in rows])


def test_a_modified_ledger_gives_no_invoice(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    issue_invoices(company)
    restored_company = restore_ledger(company)
    with tenant_scope(restored_company.tenant_id):
        entry = LedgerEntry.objects.filter(line="fast.generated").get()
        # The added entries balance each other, so that the database accepts them. No entry has
        # the positions 98 and 99.
        entry.position, entry.quantity = 99, 1
        offset = LedgerEntry.objects.filter(transaction_id=entry.transaction_id, line="").get()
        offset.position, offset.amount_micros = 98, -entry.amount_micros
        LedgerEntry.objects.bulk_create([entry, offset])

    with pytest.raises(InvoiceNotReproducible) as exc_info:
        find_invoice(actor=restored_company.platform, number=1)
    assert "{name}" in exc_info.value.wording, "a text with values in it cannot be translated"


def test_an_invoice_with_another_digest_is_not_shown(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    issue_invoices(company)
    restored_company = restore_ledger(company, digest=b"another".ljust(32))  # 32 bytes: SHA-256

    with pytest.raises(InvoiceNotReproducible):
        find_invoice(actor=restored_company.platform, number=1)

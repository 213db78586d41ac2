"""Invoices on the real database: they bill all usage once, have consecutive numbers, and can be
reproduced from the ledger."""

from datetime import UTC, date, datetime, timedelta
from threading import Thread
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import DatabaseError, connection
from structlog.testing import capture_logs

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden, NotFound
from tenants.base.money import MICROS_PER_CENT
from tenants.base.permissions import Role
from tenants.billing.invoices import operations
from tenants.billing.invoices.billing_profile import set_billing_profile
from tenants.billing.invoices.document import InvoiceParty, InvoiceTax
from tenants.billing.invoices.operations import (
    issue_due_invoices,
    issue_due_invoices_of_all_tenants,
)
from tenants.billing.invoices.queries import (
    InvoiceView,
    find_invoice,
    read_page_of_invoices,
)
from tenants.billing.ledger.credits import grant_credit
from tenants.billing.ledger.queries import LedgerFilter, read_page_of_ledger
from tenants.billing.rating.operations import rate_tenant
from tenants.models import (
    BillingState,
    Invoice,
    LedgerTransaction,
)
from tests.fakes.billing import (
    AFTER,
    LARGE_USAGE,
    OCTOBER,
    SEAT_MICROS,
    ingest_completion,
    make_customer,
    make_old_customer,
    read_balances,
)
from tests.fixtures.companies import Cast, Company, make_company


@pytest.fixture
def company() -> Company:
    return make_old_customer(OCTOBER)


def issue_invoices(company: Company, now: datetime = AFTER) -> list[str]:
    rate_tenant(company.tenant_id, now=now)
    return issue_due_invoices(company.tenant_id, now=now)


def read_invoice(company: Company, number: int = 1) -> InvoiceView:
    return find_invoice(actor=company.administrator.actor, number=number)


def test_a_finished_month_is_invoiced(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)

    assert issue_invoices(company) == [f"{company.slug.upper()}-000001"]

    document = read_invoice(company).document
    assert (document.period_from, document.period_until) == ("2026-10-01", "2026-11-01")
    # Five users from the 3rd on: the month, less 2 of its 31 days. Cents are rounded half up.
    seats_micros = 5 * (SEAT_MICROS - SEAT_MICROS * 2 // 31)
    seats_cents = (seats_micros + MICROS_PER_CENT // 2) // MICROS_PER_CENT
    assert [(line.code, line.amount_cents) for line in document.lines] == [
        ("seats", seats_cents),
        ("fast.prompt", 30),
        ("fast.generated", 60),
    ]
    assert document.total_cents == sum(line.amount_cents for line in document.lines)


def test_an_invoice_bills_everything_of_its_month(company: Company) -> None:
    ingest_completion(
        company, company.developer, OCTOBER, prompt_tokens=7, cached_tokens=0, generated_tokens=3
    )

    issue_invoices(company)

    balances = read_balances(company.tenant_id)
    assert "unbilled" not in balances
    assert balances["receivable"] == read_invoice(company).document.total_cents * MICROS_PER_CENT
    assert sum(balances.values()) == 0


def test_credits_are_deducted_before_tax(company: Company) -> None:
    grant_credit(actor=company.platform, amount_micros=500_000, reason="Welcome.", now=OCTOBER)
    customer = InvoiceParty("Invoiced Ltd", ("1 Street",))
    set_billing_profile(
        actor=company.platform, customer=customer, tax=InvoiceTax("VAT", 1_900), now=OCTOBER
    )
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)

    issue_invoices(company)

    document = read_invoice(company).document
    # The tax is 19% of the rest, rounded half up.
    assert document.credit_cents == 50
    assert document.tax_cents == (19 * (document.subtotal_cents - 50) + 50) // 100
    assert document.head.customer == customer
    assert "credits" not in read_balances(company.tenant_id)


def test_an_invoice_uses_up_at_most_its_own_amount_of_credit(company: Company) -> None:
    grant_credit(actor=company.platform, amount_micros=10**9, reason="Welcome.", now=OCTOBER)
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)

    issue_invoices(company)

    document = read_invoice(company).document
    assert (document.credit_cents, document.total_cents) == (document.subtotal_cents, 0)
    # The balance of available credits is negative.
    assert (
        read_balances(company.tenant_id)["credits"]
        == document.credit_cents * MICROS_PER_CENT - 10**9
    )


def test_a_month_is_invoiced_once(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    issue_invoices(company)

    assert issue_invoices(company) == []


# AFTER is seven hours after the end of October.
@pytest.mark.parametrize("now", [AFTER - timedelta(hours=2), OCTOBER, OCTOBER - timedelta(days=90)])
def test_a_month_is_not_invoiced_until_six_hours_after_its_end(
    company: Company, now: datetime
) -> None:
    ingest_completion(company, company.developer, OCTOBER)

    assert issue_invoices(company, now) == []


def test_unrated_usage_is_rated_before_invoicing(company: Company) -> None:
    rate_tenant(company.tenant_id, now=AFTER)
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)

    assert len(issue_due_invoices(company.tenant_id, now=AFTER)) == 1

    assert "fast.generated" in {line.code for line in read_invoice(company).document.lines}


def test_an_invoice_is_issued_although_usage_keeps_arriving(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rate_while_more_comes(tenant_id: TenantId, **fields: Any) -> int:
        num_batches = rate_tenant(tenant_id, **fields)
        ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
        return num_batches

    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    monkeypatch.setattr(operations, "rate_tenant", rate_while_more_comes)

    assert len(issue_due_invoices(company.tenant_id, now=AFTER)) == 1

    (line,) = (
        entry for entry in read_invoice(company).document.lines if entry.code == "fast.generated"
    )
    assert line.quantity == 1_000_000
    december = datetime(2026, 12, 1, 7, tzinfo=UTC)
    assert len(issue_due_invoices(company.tenant_id, now=december)) == 1
    late = [
        entry for entry in read_invoice(company, 2).document.lines if entry.used_in == "2026-10-01"
    ]
    assert [entry.quantity for entry in late if entry.code == "fast.generated"] == [1_000_000]


def test_rating_stops_at_the_given_batch(company: Company) -> None:
    for _ in range(3):
        ingest_completion(company, company.developer, OCTOBER)

    assert rate_tenant(company.tenant_id, now=AFTER, until_batch=2) == 2
    assert rate_tenant(company.tenant_id, now=AFTER, until_batch=2) == 0
    assert rate_tenant(company.tenant_id, now=AFTER) == 1


def test_a_month_without_usage_has_no_invoice_and_no_number() -> None:
    company = make_company("invoiced", {})
    make_customer(company)
    ingest_completion(company, person=None, at=OCTOBER)
    december = datetime(2026, 12, 1, 7, tzinfo=UTC)
    issue_invoices(company, december)
    ingest_completion(company, person=None, at=datetime(2026, 12, 3, tzinfo=UTC))

    issue_invoices(company, datetime(2027, 1, 1, 7, tzinfo=UTC))

    with tenant_scope(company.tenant_id):
        rows = Invoice.objects.order_by("number").values_list("number", "month")
        assert list(rows) == [(1, date(2026, 10, 1)), (2, date(2026, 12, 1))]


def test_a_late_record_is_billed_on_the_next_invoice(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    issue_invoices(company)
    before = read_invoice(company).json
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)

    issue_invoices(company, datetime(2026, 12, 1, 7, tzinfo=UTC))

    late = [
        line for line in read_invoice(company, 2).document.lines if line.used_in == "2026-10-01"
    ]
    late_amounts = [(line.code, line.amount_cents) for line in late]
    assert late_amounts == [("fast.prompt", 30), ("fast.generated", 60)]
    assert read_invoice(company).json == before


def test_a_clock_that_jumps_back_issues_no_second_invoice(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    issue_invoices(company)

    for now in (OCTOBER, AFTER - timedelta(days=400), AFTER):
        assert issue_invoices(company, now) == []


def test_a_clock_that_jumped_ahead_neither_loses_nor_duplicates_usage(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    clock_ahead = datetime(2027, 3, 1, 7, tzinfo=UTC)
    issue_invoices(company, clock_ahead)
    ingest_completion(company, company.developer, OCTOBER + timedelta(days=1), **LARGE_USAGE)
    issue_invoices(company, AFTER + timedelta(days=30))  # the clock is right again
    issue_invoices(company, clock_ahead + timedelta(days=31))

    with tenant_scope(company.tenant_id):
        numbers = list(Invoice.objects.order_by("number").values_list("number", flat=True))
    generated = [
        line.quantity
        for number in numbers
        for line in read_invoice(company, number).document.lines
        if line.code == "fast.generated"
    ]
    assert sum(generated) == 2_000_000
    assert numbers == list(range(1, len(numbers) + 1))


def test_concurrent_workers_issue_one_invoice(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    rate_tenant(company.tenant_id, now=AFTER)
    issued: list[str] = []

    def issue() -> None:
        try:
            issued.extend(issue_due_invoices(company.tenant_id, now=AFTER))
        finally:
            connection.close()

    workers = [Thread(target=issue) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert len(issued) == 1
    with tenant_scope(company.tenant_id):
        assert BillingState.objects.get(tenant_id=company.tenant_id).last_invoice_number == 1


def test_a_failure_at_one_tenants_invoice_does_not_stop_anothers() -> None:
    broken_company, other_company = make_old_customer(OCTOBER), make_old_customer(OCTOBER)
    for company in (broken_company, other_company):
        ingest_completion(company, company.developer, OCTOBER, **LARGE_USAGE)
    with tenant_scope(broken_company.tenant_id):
        BillingState.objects.filter(tenant_id=broken_company.tenant_id).update(
            last_invoice_number=2**31 - 1  # the column's maximum
        )

    with capture_logs() as logs:
        issue_due_invoices_of_all_tenants(now=AFTER)

    assert read_invoice(other_company).document.total_cents > 0
    expected = {"tenant_id": broken_company.tenant_id, "error": "DataError", "log_level": "error"}
    assert expected | {"event": "billing.not_invoiced"} in logs


@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET total_micros = 0"])
def test_invoices_can_be_neither_changed_nor_deleted(company: Company, change: str) -> None:
    with (
        pytest.raises(DatabaseError, match="permission denied"),
        tenant_scope(company.tenant_id),
        connection.cursor() as cursor,
    ):
        cursor.execute(change.format("tenants_invoice"))


def test_a_change_of_profile_does_not_change_issued_invoices(
    company: Company, settings: LazySettings
) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    issue_invoices(company)
    before = read_invoice(company).json

    settings.INVOICE_ISSUER = "Somebody else"
    set_billing_profile(
        actor=company.platform, customer=InvoiceParty("New name"), tax=InvoiceTax("", 0), now=AFTER
    )

    assert read_invoice(company).json == before


def test_another_tenants_invoices_and_ledger_are_not_found(company: Company, cast: Cast) -> None:
    ingest_completion(company, company.developer, OCTOBER)
    issue_invoices(company)
    bob = cast.globex.administrator.actor

    with pytest.raises(NotFound):
        find_invoice(actor=bob, number=1)
    assert read_page_of_invoices(actor=bob, limit=10, cursor=None).rows == []
    assert (
        read_page_of_ledger(actor=bob, limit=10, cursor=None, ledger_filter=LedgerFilter()).rows
        == []
    )


def test_a_developer_cannot_read_invoices_or_the_ledger(company: Company) -> None:
    for read in (
        lambda actor: read_page_of_invoices(actor=actor, limit=1, cursor=None),
        lambda actor: read_page_of_ledger(
            actor=actor, limit=1, cursor=None, ledger_filter=LedgerFilter()
        ),
    ):
        with pytest.raises(Forbidden):
            read(company.developer.actor)


def test_the_ledger_is_paginated(company: Company) -> None:
    for hour in range(5):
        ingest_completion(company, company.developer, OCTOBER + timedelta(hours=hour))
        rate_tenant(company.tenant_id, now=OCTOBER + timedelta(hours=hour))
    actor = company.people[Role.AUDITOR].actor
    row_ids: list[str] = []
    cursor = None
    while True:
        page = read_page_of_ledger(
            actor=actor, limit=2, cursor=cursor, ledger_filter=LedgerFilter(month=date(2026, 10, 1))
        )
        row_ids += [str(row.id) for row in page.rows]
        assert all(sum(e.amount_micros for e in row.entries) == 0 for row in page.rows)
        if (cursor := page.next_cursor) is None:
            break

    with tenant_scope(company.tenant_id):
        assert len(row_ids) == len(set(row_ids)) == LedgerTransaction.objects.count()

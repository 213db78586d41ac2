"""The billing pages: the plan, the current month, the ledger, invoices and their files."""

import hashlib
import json
import re
from datetime import UTC, datetime

import psycopg
import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.pricing import TierPrices
from tenants.base.money import MICROS
from tenants.base.permissions import Role
from tenants.billing.invoices.operations import issue_due_invoices
from tenants.billing.invoices.queries import find_invoice
from tenants.billing.ledger.credits import grant_credit
from tenants.billing.rating.operations import rate_tenant
from tests.fakes.billing import (
    ingest_completion,
    make_budget,
    make_customer,
    make_invoice,
    make_old_customer,
    make_plan,
)
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries
from tests.stack.services import Services

PATHS = ("/billing", "/billing/ledger", "/billing/invoices", "/billing/profile")
READERS = set(Role) - {Role.DEVELOPER}


@pytest.fixture
def company() -> Company:
    """Return a company whose members joined on 1 September and whose plan began on 1 October."""
    return make_old_customer(datetime(2026, 9, 1, tzinfo=UTC))


@pytest.fixture
def bill(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Bill, who has the billing role."""
    return sign_in(company.people[Role.BILLING])


@pytest.mark.parametrize("role", list(Role))
def test_every_role_but_developer_opens_the_billing_pages(
    company: Company, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(company.people[role])

    statuses = {client.get(path).status_code for path in PATHS}

    assert statuses == ({200} if role in READERS else {403})
    assert ('href="/billing"' in client.get("/account/preferences").content.decode()) == (
        role in READERS
    )


@pytest.mark.parametrize("path", PATHS)
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"].startswith("/sign-in")


def test_the_page_shows_usage_costs_and_credit_of_this_month(
    stopped_clock: datetime, company: Company, bill: Client
) -> None:
    now = stopped_clock
    ingest_completion(company, company.developer, now, generated_tokens=2_000_000)
    rate_tenant(company.tenant_id, now=now)
    grant_credit(actor=company.platform, amount_micros=7 * MICROS, reason="Slow hours.", now=now)

    page = bill.get("/billing").content.decode()

    assert "2,000,000" in page
    assert "€1.20" in page  # two million tokens at €0.60 per million
    assert "€7.00" in page
    assert "€19.00 per month" in page


def test_the_plan_the_invoice_and_the_price_list_name_a_model_with_its_own_price(
    sign_in: SignIn,
) -> None:
    company, october = make_company("priced", ACME_PEOPLE), datetime(2026, 10, 3, 12, tzinfo=UTC)
    make_customer(
        company, plan=make_plan(model_prices={"coder-large": TierPrices(3_000_000, 0, 12_000_000)})
    )
    ingest_completion(company, company.developer, october, model="coder-large")
    november = datetime(2026, 11, 1, 7, tzinfo=UTC)
    rate_tenant(company.tenant_id, now=november)
    issue_due_invoices(company.tenant_id, now=november)
    client = sign_in(company.people[Role.BILLING])

    plan, invoice = (client.get(path) for path in ("/billing", "/billing/invoices/1"))

    assert "coder-large" in plan.content.decode()
    assert "Fast tier, coder-large, generated tokens" in invoice.content.decode()
    plans = client.get("/api/v1/plans").json()["plans"]
    prices = [price["model_prices"] for plan in plans for price in plan["prices"]]
    own_prices = {"prompt": 3_000_000, "cached_prompt": 0, "generated": 12_000_000}
    assert {"coder-large": own_prices} in prices


def test_the_page_states_that_a_tenant_has_no_plan(sign_in: SignIn) -> None:
    company = make_company("hooli", ACME_PEOPLE)

    page = sign_in(company.people[Role.AUDITOR]).get("/billing").content.decode()

    assert "No plan yet" in page


@pytest.mark.parametrize(
    ("span", "num_bars"), [("30", 30), ("90", 90), ("year", 12), ("unknown", 30)]
)
def test_the_spending_chart_covers_the_chosen_span_or_30_days(
    company: Company, bill: Client, span: str, num_bars: int
) -> None:
    # Without any spending in the span, the page has no chart.
    ingest_completion(company, company.developer, timezone.now(), generated_tokens=2_000_000)
    rate_tenant(company.tenant_id, now=timezone.now())

    answer = bill.get("/billing", {"span": span}, headers={"HX-Request": "true"})

    part = answer.content.decode()
    assert "<html" not in part
    assert part.count("<title>") == num_bars  # each bar has a title


def test_amounts_follow_the_readers_number_format(company: Company, bill: Client) -> None:
    grant_credit(
        actor=company.platform, amount_micros=1_234 * MICROS, reason="-", now=timezone.now()
    )
    bill.cookies["caret-language"] = "de"

    assert "1.234,00" in bill.get("/billing").content.decode()


def test_the_ledger_shows_both_sides_of_a_transaction(company: Company, bill: Client) -> None:
    grant_credit(actor=company.platform, amount_micros=7 * MICROS, reason="-", now=timezone.now())

    page = bill.get("/billing/ledger", {"account": "credits"}).content.decode()

    assert page.count("<li><details>") == 1
    assert "expense.promotions" in page
    # In the day's total, as the transaction's amount, as its debit, and as its credit.
    assert page.count("€7.00") == 4


def test_the_ledger_has_the_totals_of_each_day_and_folds_amounts_below_a_cent(
    company: Company, bill: Client
) -> None:
    now = timezone.now()
    for num_tokens in (2_000_000, 5_000, 1_000):
        ingest_completion(
            company, company.developer, now, prompt_tokens=0, generated_tokens=num_tokens
        )
        rate_tenant(company.tenant_id, now=now)

    page = bill.get("/billing/ledger", {"account": "revenue.tokens"}).content.decode()

    assert page.count('class="ledger-day"') == 1
    assert re.search(r"\(3\)</span> <b>€1.20</b>", page)
    assert "2 transactions below €0.01 each" in page
    assert "€0.0036</span>" in page  # 5,000 and 1,000 tokens: 0.003 + 0.0006


@pytest.mark.parametrize(
    "query", [{"account": "cash"}, {"first": "x"}, {"cursor": "zzz"}, {"last": "9999-12-31"}]
)
def test_an_invalid_ledger_filter_is_rejected_with_a_message(
    bill: Client, query: dict[str, str]
) -> None:
    answer = bill.get("/billing/ledger", query)

    assert answer.status_code == 400
    assert "Change the filter" in answer.content.decode()


@pytest.mark.parametrize("day", ["1970-01-02", "2199-12-30"])
def test_the_ledger_accepts_the_earliest_and_the_latest_day(bill: Client, day: str) -> None:
    assert bill.get("/billing/ledger", {"first": day, "last": day}).status_code == 200


def test_the_ledger_is_paginated(company: Company, bill: Client) -> None:
    # Seats are booked each day from the start of the plan on. A page has 50 transactions.
    rate_tenant(company.tenant_id, now=datetime(2026, 11, 30, tzinfo=UTC))

    first = bill.get("/billing/ledger", {"account": "revenue.seats"}).content.decode()

    assert first.count("revenue.seats</code>") == 50
    assert "account=revenue.seats&amp;cursor=" in first


def test_an_invoices_page_and_files_show_the_same_document(company: Company, bill: Client) -> None:
    number = make_invoice(company)
    invoice = find_invoice(actor=company.administrator.actor, number=number)

    page = bill.get(f"/billing/invoices/{number}").content.decode()
    as_json = bill.get(f"/billing/invoices/{number}/json")
    as_pdf = bill.get(f"/billing/invoices/{number}/pdf")

    assert hashlib.sha256(as_json.content).hexdigest() in page
    assert json.loads(as_json.content)["total_cents"] == invoice.document.total_cents
    assert as_pdf.content.startswith(b"%PDF")
    assert invoice.document.head.number in as_pdf["Content-Disposition"]
    assert invoice.document.head.number in bill.get("/billing/invoices").content.decode()


def test_an_invoices_page_says_what_its_einvoice_lacks(company: Company, bill: Client) -> None:
    number = make_invoice(company)

    page = bill.get(f"/billing/invoices/{number}").content.decode()

    assert "None: this document lacks" in page
    assert "the issuer’s country, the issuer’s tax ID, the recipient’s country, a tax rate" in page


@pytest.mark.parametrize("suffix", ["", "/pdf", "/json"])
def test_an_invoice_that_the_ledger_does_not_reproduce_is_a_conflict(
    services: Services, company: Company, bill: Client, suffix: str
) -> None:
    number = make_invoice(company)
    # Only the owner of the tables can change an invoice, while row-level security is off.
    with psycopg.connect(services.owner_database_url, autocommit=True) as owner:
        owner.execute("ALTER TABLE tenants_invoice NO FORCE ROW LEVEL SECURITY")
        owner.execute(
            "UPDATE tenants_invoice SET digest = sha256('another') WHERE tenant_id = %s",
            [company.tenant_id],
        )
        owner.execute("ALTER TABLE tenants_invoice FORCE ROW LEVEL SECURITY")

    answer = bill.get(f"/billing/invoices/{number}{suffix}")
    # The REST API returns the JSON document at the invoice's own path.
    by_api = bill.get(f"/api/v1/invoices/{number}{suffix.removesuffix('/json')}")

    assert answer.status_code == 409
    assert ", rebuilt from the ledger, does not match" in answer.content.decode()
    assert (by_api.status_code, by_api.json()["code"]) == (409, "invoice_not_reproducible")


@pytest.mark.parametrize("suffix", ["", "/pdf", "/json"])
def test_another_tenants_invoice_is_not_found(
    company: Company, sign_in: SignIn, suffix: str
) -> None:
    number = make_invoice(company)
    bob = sign_in(make_company("hooli", GLOBEX_PEOPLE).administrator)

    for invoice_number in (number, 4711, 10**12):  # the last two exist in no tenant
        assert bob.get(f"/billing/invoices/{invoice_number}{suffix}").status_code == 404


def test_the_pages_run_few_queries(company: Company, bill: Client) -> None:
    number = make_invoice(company)
    make_budget(company)

    for path in (*PATHS, f"/billing/invoices/{number}"):
        with few_queries():
            assert bill.get(path).status_code == 200

"""A model can have its own price, which applies to ledger, spending, invoices and budgets."""

from datetime import UTC, date, datetime, timedelta
from typing import Final

import pytest

from caret.contracts.pricing import TierPrices, TokenCounts, cost_micros
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.billing.invoices.operations import issue_due_invoices
from tenants.billing.invoices.queries import find_invoice
from tenants.billing.plans.operations import NewPrice, add_price
from tenants.billing.pricing import price_tokens
from tenants.billing.rating.operations import rate_tenant
from tenants.billing.rating.tokens import rate_tokens
from tenants.billing.spending.queries import read_spending_overview
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.models import LedgerEntry, StripeCustomer, StripeEvent
from tests.fakes.billing import (
    FAST,
    NOW,
    QUALITY,
    SEAT_MICROS,
    START,
    TIERS,
    ingest_completion,
    make_budget,
    make_customer,
    make_plan,
    read_balances,
)
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company

# A model name of the maximum length, 128 characters, with special characters that are allowed.
LARGE: Final = "acme/Coder-2.5:large@v1." + "x" * 104
LARGE_PRICES: Final = TierPrices(prompt=3_000_000, cached_prompt=300_000, generated=12_000_000)
AT: Final = datetime(2026, 10, 3, 12, tzinfo=UTC)
AFTER: Final = datetime(2026, 11, 1, 7, tzinfo=UTC)  # October can be invoiced
# 100,000 prompt tokens are cached, and 100,000 are not.
TOKENS: Final = {"prompt_tokens": 200_000, "cached_tokens": 100_000, "generated_tokens": 50_000}


@pytest.fixture
def company() -> Company:
    company = make_company("priced", ACME_PEOPLE)
    make_customer(company, plan=make_plan(model_prices={LARGE: LARGE_PRICES}))
    return company


def ingest_usage(
    company: Company, model: str | None, at: datetime = AT, tier: str = "fast"
) -> None:
    """Insert a usage record of TOKENS. With the model None, the record does not name its model."""
    ingest_completion(company, company.developer, at, model=model, tier=tier, **TOKENS)


def read_token_lines(company: Company) -> dict[str, tuple[int, int]]:
    """Return the quantity and the price of each token line in the ledger."""
    with tenant_scope(company.tenant_id):
        entries = LedgerEntry.objects.exclude(line="").exclude(line="seats")
        return {entry.line: (entry.quantity, entry.price_micros) for entry in entries}


def test_usage_of_the_model_has_its_own_lines_and_prices(company: Company) -> None:
    ingest_usage(company, LARGE)
    ingest_usage(company, "small")
    ingest_usage(company, None)

    rate_tokens(company.tenant_id, now=NOW)

    assert read_token_lines(company) == {
        "fast.prompt": (200_000, FAST.prompt),
        "fast.cached_prompt": (200_000, FAST.cached_prompt),
        "fast.generated": (100_000, FAST.generated),
        f"fast.prompt.{LARGE}": (100_000, LARGE_PRICES.prompt),
        f"fast.cached_prompt.{LARGE}": (100_000, LARGE_PRICES.cached_prompt),
        f"fast.generated.{LARGE}": (50_000, LARGE_PRICES.generated),
    }
    assert read_balances(company.tenant_id)["unbilled"] == sum(
        price_tokens(num_tokens, price) for num_tokens, price in read_token_lines(company).values()
    )


def test_a_day_costs_the_same_in_one_batch_or_in_many(company: Company) -> None:
    other_company = make_company("priced", ACME_PEOPLE)
    make_customer(other_company, plan=make_plan(model_prices={LARGE: LARGE_PRICES}))
    for minute in range(6):
        at = AT + timedelta(minutes=minute)
        for customer in (company, other_company):
            ingest_usage(customer, LARGE if minute % 2 else "small", at)
        rate_tokens(company.tenant_id, now=NOW)
    rate_tokens(other_company.tenant_id, now=NOW)

    assert read_balances(company.tenant_id) == read_balances(other_company.tenant_id)


def test_a_price_of_a_model_applies_from_its_effective_day() -> None:
    company = make_company("priced", ACME_PEOPLE)
    plan = make_plan()
    make_customer(company, plan=plan)
    price = NewPrice(date(2026, 10, 25), SEAT_MICROS, TIERS, {LARGE: LARGE_PRICES})
    add_price(plan=plan, new=price, now=NOW)
    for day in (24, 25):
        ingest_usage(company, LARGE, datetime(2026, 10, day, 23, 59, tzinfo=UTC))

    rate_tokens(company.tenant_id, now=NOW + timedelta(days=9))

    assert read_token_lines(company)["fast.generated"] == (50_000, FAST.generated)
    assert read_token_lines(company)[f"fast.generated.{LARGE}"] == (50_000, LARGE_PRICES.generated)


def test_spending_of_users_and_days_contains_the_model(company: Company) -> None:
    ingest_usage(company, LARGE, tier="quality")
    ingest_usage(company, "small", tier="quality")

    rated = rate_tokens(company.tenant_id, now=NOW)

    tokens = TokenCounts(100_000, 100_000, 50_000)
    assert sum(entry.micros for entry in rated.spend_entries) == (
        cost_micros(QUALITY, tokens) + cost_micros(LARGE_PRICES, tokens)
    )
    spending = read_spending_overview(actor=company.administrator.actor, first=START, now=NOW)
    assert spending is not None
    by_line = {cost.line: cost.amount_micros for cost in spending.daily_costs}
    # 50,000 generated tokens at 12,000,000 micros for a million tokens.
    assert by_line[f"quality.generated.{LARGE}"] == 600_000
    assert sum(by_line.values()) == read_balances(company.tenant_id)["unbilled"]


def test_a_neighbour_does_not_get_the_price_of_another_plan(company: Company) -> None:
    neighbour = make_company("neighbour", ACME_PEOPLE)
    make_customer(neighbour)
    ingest_usage(neighbour, LARGE)

    rate_tokens(neighbour.tenant_id, now=NOW)

    assert set(read_token_lines(neighbour)) == {
        "fast.prompt",
        "fast.cached_prompt",
        "fast.generated",
    }


def test_the_invoice_has_lines_by_model(company: Company) -> None:
    for model in (LARGE, "small"):
        ingest_usage(company, model)
        ingest_usage(company, model, AT + timedelta(days=1))
    rate_tenant(company.tenant_id, now=AFTER)

    issue_due_invoices(company.tenant_id, now=AFTER)

    document = find_invoice(actor=company.administrator.actor, number=1).document
    token_lines = [line for line in document.lines if line.code != "seats"]
    assert [(line.code, line.quantity, line.amount_cents) for line in token_lines] == [
        ("fast.prompt", 200_000, 3),
        ("fast.cached_prompt", 200_000, 0),
        ("fast.generated", 100_000, 6),
        (f"fast.prompt.{LARGE}", 200_000, 60),
        (f"fast.cached_prompt.{LARGE}", 200_000, 6),
        (f"fast.generated.{LARGE}", 100_000, 120),
    ]
    assert token_lines[3].description == f"Fast tier, {LARGE}, prompt tokens"


def test_meter_events_count_the_tokens_of_the_tier(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        StripeCustomer.objects.create(
            tenant_id=company.tenant_id, customer_id="cus_1", created_at=NOW
        )
    ingest_usage(company, LARGE)
    ingest_usage(company, "small")

    rate_tokens(company.tenant_id, now=NOW)

    with tenant_scope(company.tenant_id):
        events = StripeEvent.objects.filter(event_name="caret_fast_generated_tokens")
        assert sorted(event.quantity for event in events) == [50_000, 50_000]


def test_gateways_get_the_prices_of_models(company: Company) -> None:
    make_budget(company)

    prices = read_snapshot(tenant_id=company.tenant_id, now=NOW).spending.prices

    assert [price.model_prices for price in prices] == [{LARGE: LARGE_PRICES}]

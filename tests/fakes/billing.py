"""Plans, and companies that subscribe to one."""

import secrets
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from caret.contracts.policy import Tier
from caret.contracts.pricing import BudgetScope, TierPrices, decode_indexes
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import RequestId, TenantId, new_request_id
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_day
from tenants.base.money import Currency
from tenants.billing.budgets.operations import BudgetTarget, BudgetTerms, create_budget
from tenants.billing.budgets.queries import BudgetView
from tenants.billing.invoices.operations import issue_due_invoices
from tenants.billing.plans.operations import NewPrice, add_price, create_plan, subscribe_tenant
from tenants.billing.rating.operations import rate_tenant
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.models import BillingState, Invoice, LedgerEntry, Membership, Tenant, UsageRecord
from tenants.usage.ingestion.batch_numbers import allocate_batch
from tests.fixtures.companies import ACME_PEOPLE, Company, Person, completion_fields, make_company
from tests.fixtures.users import make_colleague

START: Final = date(2026, 10, 1)  # subscriptions begin
NOW: Final = datetime(2026, 10, 20, 12, tzinfo=UTC)
OCTOBER: Final = datetime(2026, 10, 3, 12, tzinfo=UTC)  # a time in the month that is invoiced
AFTER: Final = datetime(2026, 11, 1, 7, tzinfo=UTC)  # October can be invoiced
# Costs 0.90 EUR at the prices of FAST below.
LARGE_USAGE: Final = {
    "prompt_tokens": 2_000_000,
    "cached_tokens": 0,
    "generated_tokens": 1_000_000,
}
# Micros for a million tokens. The quality tier costs ten times as much as the fast one.
FAST: Final = TierPrices(prompt=150_000, cached_prompt=15_000, generated=600_000)
QUALITY: Final = TierPrices(prompt=1_500_000, cached_prompt=150_000, generated=6_000_000)
TIERS: Final = {Tier.FAST: FAST, Tier.QUALITY: QUALITY}
OF_TENANT: Final = BudgetTarget(BudgetScope.TENANT)
SEAT_MICROS: Final = 19_000_000


def make_plan(
    *,
    currency: Currency = Currency.EUR,
    effective_on: date = date(2026, 1, 1),
    model_prices: dict[str, TierPrices] | None = None,
) -> str:
    slug = f"team-{secrets.token_hex(4)}"
    create_plan(slug=slug, name="Team", currency=currency, now=NOW)
    price = NewPrice(effective_on, SEAT_MICROS, TIERS, model_prices or {})
    add_price(plan=slug, new=price, now=NOW)
    return slug


def make_customer(company: Company, *, starts_on: date = START, plan: str | None = None) -> None:
    """Subscribe the company from that day on. Without `plan`, tests share a plan."""
    backdate_company(company, starts_on)
    subscribe_tenant(
        actor=company.platform, plan=plan or _make_shared_plan(), starts_on=starts_on, now=NOW
    )


@cache
def _make_shared_plan() -> str:
    """Make a plan once, because adding a price reads every tenant."""
    return make_plan()


def backdate_company(company: Company, day: date) -> None:
    """Move the company's creation back to that day if it is younger."""
    younger = Tenant.objects.filter(id=company.tenant_id, created_at__gt=start_of_day(day))
    younger.update(created_at=start_of_day(day))


def make_old_customer(since: datetime) -> Company:
    """Return a company with a plan, whose five users have been members since then."""
    company = make_company("invoiced", ACME_PEOPLE)
    make_customer(company)
    with tenant_scope(company.tenant_id):
        Membership.objects.filter(tenant_id=company.tenant_id).update(created_at=since)
    return company


def ingest_completion(
    company: Company, person: Person | None, at: datetime, **fields: Any
) -> RequestId:
    """Insert a usage record of a completion at that time, as the only record of its batch."""
    request_id = new_request_id(now_ms=to_unix_ms(at))
    with tenant_scope(company.tenant_id):
        UsageRecord.objects.create(
            tenant_id=company.tenant_id,
            occurred_at=at,
            request_id=UUID(request_id),
            user_id=None if person is None else person.user_id,
            batch=allocate_batch(company.tenant_id),
            **completion_fields(**fields),
        )
    return request_id


def read_balances(tenant_id: TenantId) -> dict[str, int]:
    """Return the balance of each account that is not zero."""
    totals: dict[str, int] = {}
    with tenant_scope(tenant_id):
        for entry in LedgerEntry.objects.filter(tenant_id=tenant_id):
            totals[entry.account] = totals.get(entry.account, 0) + entry.amount_micros
    return {account: total for account, total in sorted(totals.items()) if total}


def make_budget(
    company: Company,
    *,
    limit_micros: int = 1_000_000,
    holder: BudgetTarget = OF_TENANT,
    is_hard: bool = True,
    webhook_url: str = "",
    is_per_seat: bool = False,
) -> BudgetView:
    terms = BudgetTerms(limit_micros, is_hard, webhook_url, is_per_seat)
    return create_budget(actor=company.platform, holder=holder, terms=terms, now=timezone.now())


def ensure_customer(company: Company) -> None:
    """Give the company a plan unless it has one; several tests share companies."""
    with tenant_scope(company.tenant_id):
        is_customer = BillingState.objects.filter(tenant_id=company.tenant_id).exists()
    if not is_customer:
        make_customer(company)


def ensure_invoice(company: Company) -> int:
    """Return the number of the company's first invoice. If there is none, issue one."""
    ensure_customer(company)
    with tenant_scope(company.tenant_id):
        invoice = Invoice.objects.filter(tenant_id=company.tenant_id).order_by("number").first()
    return make_invoice(company) if invoice is None else invoice.number


def make_invoice(company: Company) -> int:
    """Issue an invoice for October with one completion, and return its number."""
    ingest_completion(company, company.developer, datetime(2026, 10, 3, tzinfo=UTC))
    rate_tenant(company.tenant_id, now=AFTER)
    (invoice_number,) = issue_due_invoices(company.tenant_id, now=AFTER)
    return int(invoice_number.rpartition("-")[2])  # 7 of "ACME-000007"


def make_users_budget(company: Company) -> BudgetView:
    """Make a budget for a new member of a company that other tests use as well."""
    ensure_customer(company)
    holder = BudgetTarget(BudgetScope.USER, UUID(make_colleague(company).user_id))
    return make_budget(company, holder=holder)


def hard_budgets(company: Company) -> dict[str, tuple[str, ...]]:
    """Return the users of each hard budget by the budget's ID, as gateways receive them."""
    spending = read_snapshot(tenant_id=company.tenant_id, now=NOW).spending
    # A snapshot names each user's budgets by their indexes in the list of all budgets.
    num_budgets = len(spending.budgets)
    indexes_by_user = {
        user: decode_indexes(encoded, num_indexes=num_budgets)
        for user, encoded in spending.budgets_of.items()
    }
    return {
        budget.budget_id: tuple(
            user for user, indexes in indexes_by_user.items() if index in indexes
        )
        for index, budget in enumerate(spending.budgets)
    }

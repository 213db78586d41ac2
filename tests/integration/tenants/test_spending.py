"""A tenant's spending equals the sum of its ledger.

The spending is computed only from the last ledger entry of each day and line.
"""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from django.db.models import Sum

from caret.contracts.pricing import BudgetScope
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden
from tenants.base.permissions import Role
from tenants.billing.budgets.operations import BudgetTarget
from tenants.billing.budgets.status_queries import list_nearest_limit
from tenants.billing.invoices.operations import issue_due_invoices
from tenants.billing.invoices.queries import find_billing_profile
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.credits import grant_credit, read_credit_balance
from tenants.billing.ledger.queries import LedgerFilter, read_page_of_ledger
from tenants.billing.rating.operations import rate_tenant
from tenants.billing.spending.queries import read_spending_overview
from tenants.models import LedgerEntry
from tests.fakes.billing import (
    AFTER,
    NOW,
    SEAT_MICROS,
    START,
    ingest_completion,
    make_budget,
    make_customer,
    make_old_customer,
)
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.fixtures.users import make_team


@pytest.fixture
def company() -> Company:
    return make_old_customer(datetime(2026, 9, 1, tzinfo=UTC))


def add_usage(company: Company, *, times: int = 3) -> None:
    """Add usage on two days, and rate it in several parts, so that amounts are rounded."""
    for number in range(times):
        for day in (3, 19):
            at = datetime(2026, 10, day, number, tzinfo=UTC)
            ingest_completion(
                company, company.developer, at, generated_tokens=7 + number, tier="quality"
            )
            ingest_completion(company, company.developer, at, generated_tokens=11)
            rate_tenant(company.tenant_id, now=NOW)


def test_days_and_lines_agree_with_the_ledger(company: Company) -> None:
    add_usage(company)

    spending = read_spending_overview(actor=company.administrator.actor, first=START, now=NOW)

    assert spending is not None
    with tenant_scope(company.tenant_id):
        days_and_lines = LedgerEntry.objects.exclude(line="").values_list("day", "line")
        # Revenue is negative in the ledger.
        sums = days_and_lines.annotate(amount=-Sum("amount_micros"), num=Sum("quantity"))
        ledger_sums = {(day, line): (amount, num) for day, line, amount, num in sums}
    assert {
        (cost.day, cost.line): (cost.amount_micros, cost.quantity) for cost in spending.daily_costs
    } == ledger_sums
    # Seats of 19 days, and several lines of tokens on two days.
    assert len(ledger_sums) > 20


def test_the_overview_has_the_current_plan(company: Company) -> None:
    spending = read_spending_overview(actor=company.people[Role.BILLING].actor, first=None, now=NOW)

    assert spending is not None
    assert spending.plan is not None
    assert spending.plan.price is not None
    assert (spending.plan.name, spending.plan.price.seat_month_micros) == ("Team", SEAT_MICROS)
    assert (spending.num_seats, spending.month, spending.plan.changes_on) == (5, START, None)


def test_a_tenant_without_a_plan_has_no_overview(cast: Cast) -> None:
    actor = make_company("none", ACME_PEOPLE).administrator.actor

    assert read_spending_overview(actor=actor, first=None, now=NOW) is None


def test_another_tenant_and_a_developer_do_not_see_the_spending(company: Company) -> None:
    add_usage(company, times=1)
    other_company = make_company("neighbour", ACME_PEOPLE)
    make_customer(other_company)

    spending = read_spending_overview(actor=other_company.administrator.actor, first=START, now=NOW)

    assert spending is not None
    assert [day for day in spending.daily_costs if day.line != "seats"] == []
    developer = company.developer.actor
    for read_figures in (
        lambda: read_spending_overview(actor=developer, first=None, now=NOW),
        lambda: list_nearest_limit(actor=developer, limit=5, price=None, now=NOW),
        lambda: find_billing_profile(actor=developer),
    ):
        with pytest.raises(Forbidden):
            read_figures()


def test_credit_used_by_an_invoice_is_spent(company: Company) -> None:
    add_usage(company, times=1)
    grant_credit(actor=company.platform, amount_micros=5_000_000, reason="An outage.", now=NOW)

    issue_due_invoices(company.tenant_id, now=AFTER)

    with tenant_scope(company.tenant_id):
        assert read_credit_balance(company.tenant_id) == 0


@pytest.mark.parametrize("account", list(LedgerAccountCode))
def test_the_ledger_is_filtered_by_an_account(company: Company, account: LedgerAccountCode) -> None:
    add_usage(company, times=1)
    grant_credit(actor=company.platform, amount_micros=5_000_000, reason="An outage.", now=NOW)
    issue_due_invoices(company.tenant_id, now=AFTER)

    page = read_page_of_ledger(
        actor=company.administrator.actor,
        limit=200,
        cursor=None,
        ledger_filter=LedgerFilter(account=account),
    )

    with tenant_scope(company.tenant_id):
        ledger_entries = LedgerEntry.objects.filter(account=account)
        ledger_ids = set(ledger_entries.values_list("transaction_id", flat=True))
    assert {row.id for row in page.rows} == ledger_ids


def test_the_ledger_is_filtered_by_days(company: Company) -> None:
    add_usage(company, times=1)

    page = read_page_of_ledger(
        actor=company.administrator.actor,
        limit=200,
        cursor=None,
        ledger_filter=LedgerFilter(first=date(2026, 10, 3), last=date(2026, 10, 4)),
    )

    days = sorted((row.day.day, row.source_kind) for row in page.rows)
    assert days == [(3, "seats"), (3, "usage"), (4, "seats")]


def test_budgets_are_sorted_by_the_spent_share_of_their_limit(company: Company) -> None:
    team = make_team(company, "Platform")
    make_budget(company, limit_micros=10**12)
    make_budget(company, limit_micros=1_000, holder=BudgetTarget(BudgetScope.TEAM, UUID(team)))
    ingest_completion(company, company.developer, NOW - timedelta(hours=1), generated_tokens=10_000)
    rate_tenant(company.tenant_id, now=NOW)

    budgets = list_nearest_limit(actor=company.administrator.actor, limit=5, price=None, now=NOW)

    # None: the budget of the whole tenant.
    assert {budget.holder_name for budget in budgets} == {None, "Platform"}
    shares = [budget.spent_micros / budget.month_limit_micros for budget in budgets]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0

"""The ledger on the real database: balanced, in one currency, and append-only."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from caret.foundation.ids import TenantId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.money import Currency
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.credits import grant_credit, read_credit_balance
from tenants.billing.ledger.operations import (
    Posting,
    SourceKind,
    TransactionDraft,
    TransactionSource,
    lock_billing,
    post_transaction,
)
from tenants.billing.plans.operations import NewPrice, add_price, create_plan, subscribe_tenant
from tenants.models import (
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    Plan,
    PriceVersion,
    Tenant,
)
from tests.fakes.billing import NOW, START, TIERS, make_customer, make_plan, read_balances
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company

BALANCED = TransactionDraft(
    # The source of a usage transaction is the first and the last batch, and the day.
    source=TransactionSource(SourceKind.USAGE, "1-1:2026-10-03"),
    day=date(2026, 10, 3),
    month=START,
    memo="Tokens",
    postings=[
        Posting(LedgerAccountCode.UNBILLED, 700),
        Posting(LedgerAccountCode.TOKENS, -700, line="fast.prompt"),
    ],
)


@pytest.fixture
def company() -> Company:
    company = make_company("ledger", ACME_PEOPLE)
    make_customer(company)
    return company


def post_draft(tenant_id: TenantId, draft: TransactionDraft) -> bool:
    with tenant_scope(tenant_id):
        return post_transaction(lock_billing(tenant_id), draft, now=NOW) is not None


def test_a_transaction_moves_money_between_accounts(company: Company) -> None:
    assert post_draft(company.tenant_id, BALANCED)

    assert read_balances(company.tenant_id) == {"revenue.tokens": -700, "unbilled": 700}


def test_a_source_is_posted_once(company: Company) -> None:
    post_draft(company.tenant_id, BALANCED)

    assert not post_draft(company.tenant_id, BALANCED)
    assert read_balances(company.tenant_id) == {"revenue.tokens": -700, "unbilled": 700}


def test_the_database_refuses_a_duplicate_source(company: Company) -> None:
    post_draft(company.tenant_id, BALANCED)
    with tenant_scope(company.tenant_id):
        twin = LedgerTransaction.objects.get()
    twin.id = uuid7()

    with pytest.raises(IntegrityError), tenant_scope(company.tenant_id):
        twin.save(force_insert=True)


def test_another_tenant_can_have_the_same_source(company: Company) -> None:
    other_company = make_company("globex", {})
    make_customer(other_company)
    post_draft(company.tenant_id, BALANCED)

    assert post_draft(other_company.tenant_id, BALANCED)


def test_another_tenant_does_not_see_the_ledger(company: Company, cast: Cast) -> None:
    post_draft(company.tenant_id, BALANCED)

    with tenant_scope(cast.globex.tenant_id):
        assert not LedgerEntry.objects.exists()
        assert not LedgerTransaction.objects.exists()


def test_the_database_refuses_an_unbalanced_transaction(company: Company) -> None:
    unbalanced = replace(
        BALANCED, postings=[*BALANCED.postings, Posting(LedgerAccountCode.TAX, -1)]
    )

    with pytest.raises(IntegrityError, match="does not balance"):
        post_draft(company.tenant_id, unbalanced)

    assert read_balances(company.tenant_id) == {}


def test_two_unbalanced_transactions_do_not_balance_each_other(company: Company) -> None:
    post_draft(company.tenant_id, BALANCED)
    post_draft(
        company.tenant_id, replace(BALANCED, source=TransactionSource(SourceKind.USAGE, "2"))
    )
    with tenant_scope(company.tenant_id):
        entries = list(LedgerEntry.objects.filter(account=LedgerAccountCode.UNBILLED))
        # One more entry in each transaction: 1 and -1 micros, together zero.
        for sign, entry in zip((1, -1), entries, strict=True):
            entry.position, entry.amount_micros = 9, sign  # no entry has this position

    with pytest.raises(IntegrityError, match="does not balance"), tenant_scope(company.tenant_id):
        LedgerEntry.objects.bulk_create(entries)


def test_an_entry_must_have_its_transactions_currency(company: Company) -> None:
    post_draft(company.tenant_id, BALANCED)
    with tenant_scope(company.tenant_id):
        entries = list(LedgerEntry.objects.all())
        for entry in entries:
            # A new position, so that the currency is the only fault.
            entry.position, entry.currency = entry.position + 5, "USD"
            LedgerAccount.objects.create(
                tenant_id=company.tenant_id, code=entry.account, currency="USD"
            )

    with pytest.raises(IntegrityError, match="entry_transaction"), tenant_scope(company.tenant_id):
        LedgerEntry.objects.bulk_create(entries)


def test_an_entry_cannot_reference_another_tenants_transaction(
    company: Company, cast: Cast
) -> None:
    post_draft(company.tenant_id, BALANCED)
    other_company = make_company("globex", {})
    make_customer(other_company)
    post_draft(other_company.tenant_id, BALANCED)
    with tenant_scope(company.tenant_id):
        entries = list(LedgerEntry.objects.all())
    for entry in entries:
        entry.tenant_id = other_company.tenant_id

    with (
        pytest.raises(IntegrityError, match="entry_transaction"),
        tenant_scope(other_company.tenant_id),
    ):
        LedgerEntry.objects.bulk_create(entries)


@pytest.mark.parametrize("table", ["entry", "transaction", "account"])
@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET currency = 'USD'"])
def test_the_ledger_can_be_neither_changed_nor_deleted(
    company: Company, table: str, change: str
) -> None:
    post_draft(company.tenant_id, BALANCED)

    with (
        pytest.raises(DatabaseError, match="permission denied"),
        tenant_scope(company.tenant_id),
        connection.cursor() as cursor,
    ):
        cursor.execute(change.format(f"tenants_ledger_{table}"))


@pytest.mark.parametrize("model", [Plan, PriceVersion])
def test_plans_and_prices_cannot_be_changed(company: Company, model: Any) -> None:
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        model.objects.update(created_at=NOW)


def test_a_price_starts_tomorrow_at_the_earliest() -> None:
    plan = make_plan()
    new = NewPrice(NOW.date(), seat_month_micros=1, tiers=TIERS)

    with pytest.raises(InvalidValue) as exc_info:
        add_price(plan=plan, new=new, now=NOW)

    assert exc_info.value.field == "effective_on"


@pytest.mark.parametrize(
    ("field", "new"),
    [
        ("seat_month_micros", NewPrice(START, seat_month_micros=-1, tiers=TIERS)),
        ("tiers", NewPrice(START, seat_month_micros=1, tiers={})),
    ],
)
def test_an_invalid_price_is_rejected_with_its_field(field: str, new: NewPrice) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        add_price(plan=make_plan(), new=new, now=NOW)

    assert exc_info.value.field == field


def test_a_change_of_plan_starts_tomorrow_at_the_earliest(company: Company) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        subscribe_tenant(actor=company.platform, plan=make_plan(), starts_on=NOW.date(), now=NOW)

    assert exc_info.value.field == "starts_on"


def test_a_first_plan_cannot_start_before_the_tenants_first_month() -> None:
    company, plan = make_company("young", {}), make_plan()
    now = Tenant.objects.get(id=company.tenant_id).created_at
    first_of_month = start_of_month(now.date())

    for day in (date(1970, 1, 1), first_of_month - timedelta(days=1)):
        with pytest.raises(InvalidValue, match=f"Choose {first_of_month} or later"):
            subscribe_tenant(actor=company.platform, plan=plan, starts_on=day, now=now)

    subscribe_tenant(actor=company.platform, plan=plan, starts_on=first_of_month, now=now)


def test_a_plan_in_another_currency_is_refused(company: Company) -> None:
    plan_in_dollars = make_plan(currency=Currency.USD)

    with pytest.raises(Conflict):
        subscribe_tenant(
            actor=company.platform, plan=plan_in_dollars, starts_on=date(2026, 12, 1), now=NOW
        )


def test_a_plans_slug_is_unique() -> None:
    plan = make_plan()

    with pytest.raises(Conflict):
        create_plan(slug=plan, name="Again", currency=Currency.EUR, now=NOW)


@pytest.mark.parametrize("name", ["", " ", "x" * 121, "Two\nlines"])
def test_a_plan_needs_a_name_that_can_be_stored_and_shown(name: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        create_plan(slug="unnamed", name=name, currency=Currency.EUR, now=NOW)

    assert exc_info.value.field == "name"


def test_a_granted_credit_is_available(company: Company) -> None:
    grant_credit(actor=company.platform, amount_micros=5_000_000, reason="An outage.", now=NOW)

    with tenant_scope(company.tenant_id):
        assert read_credit_balance(company.tenant_id) == 5_000_000
    assert read_balances(company.tenant_id) == {
        "credits": -5_000_000,
        "expense.promotions": 5_000_000,
    }


# Zero, negative, not a whole number of cents (10,000 micros), and too large.
@pytest.mark.parametrize("amount_micros", [0, -10_000, 5_001, 10**18])
def test_a_credit_must_be_a_positive_limited_amount_of_whole_cents(
    company: Company, amount_micros: int
) -> None:
    with pytest.raises(InvalidValue):
        grant_credit(
            actor=company.platform, amount_micros=amount_micros, reason="An outage.", now=NOW
        )


@pytest.mark.parametrize(
    "operation",
    [
        lambda actor: grant_credit(actor=actor, amount_micros=10_000, reason="", now=NOW),
        lambda actor: subscribe_tenant(actor=actor, plan="team", starts_on=START, now=NOW),
    ],
)
def test_a_tenants_administrator_cannot_grant_credits_or_plans(
    company: Company, operation: Callable[[Any], None]
) -> None:
    with pytest.raises(Forbidden):
        operation(company.administrator.actor)


def test_a_tenant_without_a_plan_has_no_ledger(cast: Cast) -> None:
    with pytest.raises(NotFound):
        post_draft(cast.globex.tenant_id, BALANCED)

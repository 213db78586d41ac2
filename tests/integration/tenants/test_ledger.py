"""The ledger on the real database: balanced, in one currency, and append-only."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from caret.foundation.ids import TenantId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import month_of
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.money import Currency
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.credits import credit_balance, grant_credit
from tenants.billing.ledger.operations import (
    Posting,
    SourceKind,
    TransactionDraft,
    TransactionSource,
    lock_billing,
    post_transaction,
)
from tenants.billing.plans.operations import NewPrice, add_price, create_plan, subscribe
from tenants.models import LedgerAccount, LedgerEntry, LedgerTransaction, Plan, PriceVersion
from tests.fakes.billing import NOW, START, TIERS, balances, make_customer, make_plan
from tests.fixtures.companies import ACME, Cast, Company, make_company

EVEN = TransactionDraft(
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
    company = make_company("ledger", ACME)
    make_customer(company)
    return company


def books(tenant_id: TenantId, booking: TransactionDraft) -> bool:
    with tenant_scope(tenant_id):
        return post_transaction(lock_billing(tenant_id), booking, now=NOW) is not None


def test_a_booking_moves_money_from_one_account_to_another(company: Company) -> None:
    assert books(company.tenant_id, EVEN)

    assert balances(company.tenant_id) == {"revenue.tokens": -700, "unbilled": 700}


def test_a_source_is_booked_once(company: Company) -> None:
    books(company.tenant_id, EVEN)

    assert not books(company.tenant_id, EVEN)
    assert balances(company.tenant_id) == {"revenue.tokens": -700, "unbilled": 700}


def test_the_database_itself_refuses_a_source_that_comes_twice(company: Company) -> None:
    books(company.tenant_id, EVEN)
    with tenant_scope(company.tenant_id):
        twin = LedgerTransaction.objects.get()
    twin.id = uuid7()

    with pytest.raises(IntegrityError), tenant_scope(company.tenant_id):
        twin.save(force_insert=True)


def test_the_neighbour_may_have_the_same_source(company: Company) -> None:
    neighbour = make_company("globex", {})
    make_customer(neighbour)
    books(company.tenant_id, EVEN)

    assert books(neighbour.tenant_id, EVEN)


def test_the_neighbour_sees_none_of_it(company: Company, cast: Cast) -> None:
    books(company.tenant_id, EVEN)

    with tenant_scope(cast.globex.tenant_id):
        assert not LedgerEntry.objects.exists()
        assert not LedgerTransaction.objects.exists()


def test_the_database_refuses_what_does_not_balance(company: Company) -> None:
    crooked = replace(EVEN, postings=[*EVEN.postings, Posting(LedgerAccountCode.TAX, -1)])

    with pytest.raises(IntegrityError, match="does not balance"):
        books(company.tenant_id, crooked)

    assert balances(company.tenant_id) == {}


def test_two_crooked_transactions_do_not_balance_each_other(company: Company) -> None:
    books(company.tenant_id, EVEN)
    books(company.tenant_id, replace(EVEN, source=TransactionSource(SourceKind.USAGE, "2")))
    with tenant_scope(company.tenant_id):
        entries = list(LedgerEntry.objects.filter(account=LedgerAccountCode.UNBILLED))
        for sign, entry in zip((1, -1), entries, strict=True):
            entry.position, entry.amount_micros = 9, sign

    with pytest.raises(IntegrityError, match="does not balance"), tenant_scope(company.tenant_id):
        LedgerEntry.objects.bulk_create(entries)


def test_an_entry_is_in_its_transactions_currency(company: Company) -> None:
    books(company.tenant_id, EVEN)
    with tenant_scope(company.tenant_id):
        entries = list(LedgerEntry.objects.all())
        for entry in entries:
            entry.position, entry.currency = entry.position + 5, "USD"
            LedgerAccount.objects.create(
                tenant_id=company.tenant_id, code=entry.account, currency="USD"
            )

    with pytest.raises(IntegrityError, match="entry_transaction"), tenant_scope(company.tenant_id):
        LedgerEntry.objects.bulk_create(entries)


def test_an_entry_cannot_point_at_the_neighbours_transaction(company: Company, cast: Cast) -> None:
    books(company.tenant_id, EVEN)
    neighbour = make_company("globex", {})
    make_customer(neighbour)
    books(neighbour.tenant_id, EVEN)
    with tenant_scope(company.tenant_id):
        entries = list(LedgerEntry.objects.all())
    for entry in entries:
        entry.tenant_id = neighbour.tenant_id

    with (
        pytest.raises(IntegrityError, match="entry_transaction"),
        tenant_scope(neighbour.tenant_id),
    ):
        LedgerEntry.objects.bulk_create(entries)


@pytest.mark.parametrize("table", ["entry", "transaction", "account"])
@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET currency = 'USD'"])
def test_nothing_in_it_is_changed_or_taken_away(company: Company, table: str, change: str) -> None:
    books(company.tenant_id, EVEN)

    with (
        pytest.raises(DatabaseError, match="permission denied"),
        tenant_scope(company.tenant_id),
        connection.cursor() as cursor,
    ):
        cursor.execute(change.format(f"tenants_ledger_{table}"))


@pytest.mark.parametrize("model", [Plan, PriceVersion])
def test_plans_and_prices_are_never_edited(company: Company, model: Any) -> None:
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        model.objects.update(created_at=NOW)


def test_a_price_begins_tomorrow_at_the_earliest() -> None:
    plan = make_plan()

    with pytest.raises(InvalidValue) as refused:
        add_price(plan=plan, new=NewPrice(NOW.date(), 1, TIERS), now=NOW)

    assert refused.value.field == "effective_on"


@pytest.mark.parametrize(
    ("field", "new"),
    [
        ("seat_month_micros", NewPrice(START, -1, TIERS)),
        ("tiers", NewPrice(START, 1, {})),
    ],
)
def test_a_price_that_makes_no_sense_is_refused_by_its_field(field: str, new: NewPrice) -> None:
    with pytest.raises(InvalidValue) as refused:
        add_price(plan=make_plan(), new=new, now=NOW)

    assert refused.value.field == field


def test_a_change_of_plan_begins_tomorrow_at_the_earliest(company: Company) -> None:
    with pytest.raises(InvalidValue) as refused:
        subscribe(actor=company.platform, plan=make_plan(), starts_on=NOW.date(), now=NOW)

    assert refused.value.field == "starts_on"


def test_a_first_plan_begins_no_month_before_its_tenant() -> None:
    company, plan, now = make_company("young", {}), make_plan(), timezone.now()
    first = month_of(now.date())

    for day in (date(1970, 1, 1), first - timedelta(days=1)):
        with pytest.raises(InvalidValue, match=f"Choose {first} or later"):
            subscribe(actor=company.platform, plan=plan, starts_on=day, now=now)

    subscribe(actor=company.platform, plan=plan, starts_on=first, now=now)


def test_a_ledger_stays_in_one_currency(company: Company) -> None:
    dollars = make_plan(currency=Currency.USD)

    with pytest.raises(Conflict):
        subscribe(actor=company.platform, plan=dollars, starts_on=date(2026, 12, 1), now=NOW)


def test_a_plans_name_in_addresses_is_taken_once() -> None:
    plan = make_plan()

    with pytest.raises(Conflict):
        create_plan(slug=plan, name="Again", currency=Currency.EUR, now=NOW)


def test_a_credit_is_there_to_be_used(company: Company) -> None:
    grant_credit(actor=company.platform, amount_micros=5_000_000, reason="An outage.", now=NOW)

    with tenant_scope(company.tenant_id):
        assert credit_balance(company.tenant_id) == 5_000_000
    assert balances(company.tenant_id) == {"credits": -5_000_000, "expense.promotions": 5_000_000}


@pytest.mark.parametrize("amount", [0, -10_000, 5_001, 10**18])
def test_a_credit_is_of_whole_cents(company: Company, amount: int) -> None:
    with pytest.raises(InvalidValue):
        grant_credit(actor=company.platform, amount_micros=amount, reason="", now=NOW)


@pytest.mark.parametrize(
    "does",
    [
        lambda actor: grant_credit(actor=actor, amount_micros=10_000, reason="", now=NOW),
        lambda actor: subscribe(actor=actor, plan="team", starts_on=START, now=NOW),
    ],
)
def test_a_tenants_own_people_give_themselves_nothing(
    company: Company, does: Callable[[Any], None]
) -> None:
    with pytest.raises(Forbidden):
        does(company.administrator.actor)


def test_without_a_plan_there_is_nothing_to_book_in(cast: Cast) -> None:
    with pytest.raises(NotFound):
        books(cast.globex.tenant_id, EVEN)

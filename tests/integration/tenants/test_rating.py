"""Usage and seats are posted to the ledger once, on the right day and month, despite failures."""

import secrets
from datetime import UTC, date, datetime, timedelta
from threading import Thread

import pytest
from django.db import connection
from django.utils import timezone

import caret.celery  # noqa: F401  # registers the tasks
from caret.contracts.pricing import TokenCounts, cost_micros
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.billing.plans.operations import NewPrice, add_price
from tenants.billing.pricing import price_tokens
from tenants.billing.rating.clock import choose_billing_time
from tenants.billing.rating.operations import rate_tenant
from tenants.billing.rating.seats import post_seat_charges
from tenants.billing.rating.tokens import rate_tokens
from tenants.billing.tasks import rate_usage
from tenants.identity.member_lifecycle import remove_member
from tenants.identity.members.operations import add_member
from tenants.models import BillingState, LedgerEntry, LedgerTransaction, Membership, UsageRecord
from tests.fakes.billing import (
    FAST,
    NOW,
    QUALITY,
    SEAT_MICROS,
    START,
    TIERS,
    ingest_completion,
    make_customer,
    make_plan,
    read_balances,
)
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.fixtures.users import make_domain
from tests.integration.scim.provider import make_provider

OCTOBER_3 = datetime(2026, 10, 3, 12, tzinfo=UTC)
# Of the 1,900 tokens of the prompt, 20 are not cached.
USED_TOKENS = {"prompt_tokens": 1_900, "cached_tokens": 1_880, "generated_tokens": 12}


@pytest.fixture
def company() -> Company:
    """Make a customer with five members."""
    company = make_company("rated", ACME_PEOPLE)
    make_customer(company)
    return company


def read_token_quantities(company: Company) -> dict[str, int]:
    """Return the number of tokens in the ledger for each of its lines, such as fast.prompt."""
    quantities: dict[str, int] = {}
    with tenant_scope(company.tenant_id):
        for entry in LedgerEntry.objects.exclude(line=""):
            quantities[entry.line] = quantities.get(entry.line, 0) + entry.quantity
    return quantities


def list_days_and_months(company: Company) -> list[tuple[date, date]]:
    """Return the day of the usage and the month of the invoice of each posted transaction."""
    with tenant_scope(company.tenant_id):
        transactions = LedgerTransaction.objects.filter(source_kind="usage").order_by(
            "day", "created_at"
        )
        return [(row.day, row.month) for row in transactions]


def test_a_completion_is_rated_by_token_kind(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER_3, **USED_TOKENS)

    rate_tokens(company.tenant_id, now=NOW)

    assert read_token_quantities(company) == {
        "fast.prompt": 20,
        "fast.cached_prompt": 1_880,
        "fast.generated": 12,
    }
    expected = (
        price_tokens(20, FAST.prompt)
        + price_tokens(1_880, FAST.cached_prompt)
        + price_tokens(12, FAST.generated)
    )
    assert read_balances(company.tenant_id) == {"revenue.tokens": -expected, "unbilled": expected}


def test_rating_again_posts_nothing(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER_3, **USED_TOKENS)
    rate_tokens(company.tenant_id, now=NOW)
    before = read_balances(company.tenant_id)

    rating_result = rate_tokens(company.tenant_id, now=NOW)

    assert rating_result.num_batches == 0
    assert read_balances(company.tenant_id) == before


def test_a_day_costs_the_same_in_one_batch_or_in_many(company: Company) -> None:
    other_company = make_company("rated", ACME_PEOPLE)
    make_customer(other_company)
    for minute in range(30):
        at = OCTOBER_3 + timedelta(minutes=minute)
        ingest_completion(company, company.developer, at, **USED_TOKENS)
        ingest_completion(other_company, other_company.developer, at, **USED_TOKENS)
        rate_tokens(company.tenant_id, now=NOW)
    rate_tokens(other_company.tenant_id, now=NOW)

    assert read_balances(company.tenant_id) == read_balances(other_company.tenant_id)
    assert read_token_quantities(company) == read_token_quantities(other_company)


def test_a_worker_killed_while_rating_posts_nothing(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER_3, **USED_TOKENS)

    def crash() -> None:
        with tenant_scope(company.tenant_id):
            rate_tokens(company.tenant_id, now=NOW)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crash()
    assert read_balances(company.tenant_id) == {}

    rate_tokens(company.tenant_id, now=NOW)

    assert read_token_quantities(company)["fast.generated"] == 12


def test_concurrent_workers_post_each_completion_once(company: Company) -> None:
    for minute in range(20):
        ingest_completion(
            company, company.developer, OCTOBER_3 + timedelta(minutes=minute), **USED_TOKENS
        )

    def rate_repeatedly() -> None:
        try:
            for _ in range(25):
                rate_tokens(company.tenant_id, now=NOW, max_batches=1)
        finally:
            connection.close()

    workers = [Thread(target=rate_repeatedly) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert read_token_quantities(company)["fast.generated"] == 20 * 12


@pytest.mark.parametrize(
    "fields",
    [
        {"finish_reason": "error", "error_code": "engine_failed"},
        {"finish_reason": "shed", "generated_tokens": 0, "cached_tokens": None},
        {"finish_reason": "superseded", "generated_tokens": 0, "cached_tokens": None},
    ],
)
def test_failed_or_unserved_completions_are_free(
    company: Company, fields: dict[str, object]
) -> None:
    ingest_completion(company, company.developer, OCTOBER_3, **fields)

    rate_tokens(company.tenant_id, now=NOW)

    assert read_balances(company.tenant_id) == {}


def test_an_unknown_number_of_cached_tokens_counts_as_fully_cached(company: Company) -> None:
    ingest_completion(
        company,
        company.developer,
        OCTOBER_3,
        **USED_TOKENS | {"finish_reason": "cancelled", "cached_tokens": None},
    )

    rate_tokens(company.tenant_id, now=NOW)

    assert read_token_quantities(company) == {"fast.cached_prompt": 1_900, "fast.generated": 12}


def test_a_late_record_is_posted_in_the_open_month_with_its_own_day(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        BillingState.objects.update(invoiced_month=START)
    ingest_completion(company, company.developer, OCTOBER_3, **USED_TOKENS)

    rate_tokens(company.tenant_id, now=datetime(2026, 11, 2, tzinfo=UTC))

    assert list_days_and_months(company) == [(date(2026, 10, 3), date(2026, 11, 1))]


def test_a_record_with_a_future_time_is_posted_in_the_current_month(
    company: Company,
) -> None:
    ingest_completion(company, company.developer, datetime(2031, 1, 1, tzinfo=UTC), **USED_TOKENS)

    rate_tokens(company.tenant_id, now=NOW)

    assert list_days_and_months(company) == [(date(2031, 1, 1), START)]


def test_records_around_midnight_belong_to_different_months(company: Company) -> None:
    november = datetime(2026, 11, 1, tzinfo=UTC)
    ingest_completion(
        company, company.developer, november - timedelta(milliseconds=1), **USED_TOKENS
    )
    ingest_completion(company, company.developer, november, **USED_TOKENS)

    rate_tokens(company.tenant_id, now=november + timedelta(hours=1))

    assert list_days_and_months(company) == [
        (date(2026, 10, 31), date(2026, 10, 1)),
        (date(2026, 11, 1), date(2026, 11, 1)),
    ]


def test_each_day_has_the_price_of_that_day() -> None:
    company = make_company("rated", ACME_PEOPLE)
    plan = make_plan()
    make_customer(company, plan=plan)
    higher_price = NewPrice(date(2026, 10, 25), SEAT_MICROS, dict.fromkeys(TIERS, QUALITY))
    add_price(plan=plan, new=higher_price, now=NOW)
    for day in (24, 25):
        at = datetime(2026, 10, day, 23, 59, tzinfo=UTC)
        ingest_completion(
            company, company.developer, at, prompt_tokens=0, cached_tokens=0, generated_tokens=50
        )

    rate_tokens(company.tenant_id, now=NOW + timedelta(days=9))

    with tenant_scope(company.tenant_id):
        entries = LedgerEntry.objects.exclude(line="").order_by("day")
        # 50 tokens at 600,000 and at 6,000,000 micros for a million tokens. Revenue is negative.
        assert [-entry.amount_micros for entry in entries] == [30, 300]


def test_usage_before_the_plan_is_free(company: Company) -> None:
    ingest_completion(
        company, company.developer, datetime(2026, 9, 30, 23, 59, tzinfo=UTC), **USED_TOKENS
    )

    rating_result = rate_tokens(company.tenant_id, now=NOW)

    assert rating_result.num_batches == 1
    assert read_balances(company.tenant_id) == {}


def test_rating_returns_the_spending_of_each_user(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER_3, **USED_TOKENS)
    ingest_completion(company, person=None, at=OCTOBER_3, **USED_TOKENS)

    rating_result = rate_tokens(company.tenant_id, now=NOW)

    cost = cost_micros(FAST, TokenCounts(20, 1_880, 12))
    assert {(entry.user_id, entry.micros) for entry in rating_result.spend_entries} == {
        (company.developer.user_id, cost),
        (None, cost),
    }


def test_seats_are_posted_for_each_finished_day(company: Company) -> None:
    backdate_members(company, datetime(2026, 10, 2, 8, tzinfo=UTC))

    num_days = post_seat_charges(company.tenant_id, now=datetime(2026, 10, 5, 0, 0, tzinfo=UTC))

    assert num_days == 4  # October 1, on which the company had no members, has no entry
    with tenant_scope(company.tenant_id):
        entries = LedgerEntry.objects.filter(line="seats").order_by("day")
        assert [(entry.day.day, entry.quantity) for entry in entries] == [
            (2, 5),
            (3, 5),
            (4, 5),
        ]


def test_a_full_month_costs_the_seat_price_for_each_member(company: Company) -> None:
    backdate_members(company, datetime(2026, 9, 2, tzinfo=UTC))

    post_seat_charges(company.tenant_id, now=datetime(2026, 11, 1, tzinfo=UTC))

    assert read_balances(company.tenant_id)["unbilled"] == 5 * SEAT_MICROS


def test_a_member_who_rejoins_is_billed_for_both_periods(company: Company) -> None:
    """The first membership is billed even if its days are posted after the user rejoined."""
    ada, now = company.developer, datetime(2026, 10, 9, 9, tzinfo=UTC)
    backdate_members(company, datetime(2026, 9, 2, tzinfo=UTC))
    left_at = datetime(2026, 10, 4, 12, tzinfo=UTC)
    remove_member(actor=company.platform, user_id=ada.user_id, reason="", now=left_at)

    add_member(actor=company.platform, user_id=ada.user_id, role=Role.DEVELOPER, now=now)

    post_seat_charges(company.tenant_id, now=datetime(2026, 10, 11, tzinfo=UTC))
    with tenant_scope(company.tenant_id):
        entries = LedgerEntry.objects.filter(line="seats").order_by("day")
        # October 1 to 10. The days on which ada left and rejoined, the 4th and the 9th, count.
        assert [entry.quantity for entry in entries] == [5, 5, 5, 5, 4, 4, 4, 4, 5, 5]


def test_a_user_provisioned_as_inactive_takes_no_seat(company: Company) -> None:
    backdate_members(company, datetime(2026, 9, 2, tzinfo=UTC))
    name = f"{secrets.token_hex(4)}.example"
    make_domain(company, name, verified=True)
    make_provider(company).create_user(f"ada@{name}", active=False)
    with tenant_scope(company.tenant_id):
        (ada,) = Membership.objects.filter(user__email=f"ada@{name}")
        assert ada.ended_at == ada.created_at
        at = datetime(2026, 10, 3, 12, tzinfo=UTC)  # on a day that is posted below
        Membership.objects.filter(user_id=ada.user_id).update(created_at=at, ended_at=at)

    post_seat_charges(company.tenant_id, now=datetime(2026, 10, 5, tzinfo=UTC))

    with tenant_scope(company.tenant_id):
        entries = LedgerEntry.objects.filter(line="seats").order_by("day")
        assert [entry.quantity for entry in entries] == [5, 5, 5, 5]


def test_a_days_seats_are_posted_once(company: Company) -> None:
    backdate_members(company, datetime(2026, 9, 2, tzinfo=UTC))
    post_seat_charges(company.tenant_id, now=NOW)
    before = read_balances(company.tenant_id)

    assert post_seat_charges(company.tenant_id, now=NOW) == 0
    assert post_seat_charges(company.tenant_id, now=NOW - timedelta(days=9)) == 0
    assert read_balances(company.tenant_id) == before


def test_a_clock_ahead_of_the_database_is_limited() -> None:
    ahead = timezone.now() + timedelta(days=40)

    assert choose_billing_time(ahead) < ahead - timedelta(days=39)
    assert choose_billing_time(NOW) == NOW


def test_the_task_rates_tenants_with_a_plan() -> None:
    company = make_company("rated", ACME_PEOPLE)
    today = timezone.now().date()
    make_customer(company, starts_on=today)
    ingest_completion(company, company.developer, timezone.now(), **USED_TOKENS)

    rate_usage.apply().get()

    assert read_token_quantities(company)["fast.generated"] == 12


def test_batches_are_numbered_from_one_and_all_are_rated(company: Company) -> None:
    ingest_completion(company, company.developer, OCTOBER_3)
    ingest_completion(company, company.developer, OCTOBER_3)

    with tenant_scope(company.tenant_id):
        batches = set(UsageRecord.objects.values_list("batch", flat=True))
    assert batches == {1, 2}
    assert rate_tenant(company.tenant_id, now=NOW) == 2


def backdate_members(company: Company, at: datetime) -> None:
    """Let all memberships begin at this time."""
    with tenant_scope(company.tenant_id):
        Membership.objects.filter(tenant_id=company.tenant_id).update(created_at=at)

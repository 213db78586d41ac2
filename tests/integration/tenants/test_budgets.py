"""Budgets on the real database: permissions, gateways' snapshots, and alerts that are sent once."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_network
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.core import mail

from caret.contracts.pricing import BudgetScope, spend_key
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.redis_connection import connect_to_redis
from tenants.billing.budgets.alert_delivery import compute_alert_backoff, deliver_due_alerts
from tenants.billing.budgets.alerts import find_crossed_thresholds
from tenants.billing.budgets.operations import (
    BudgetTarget,
    BudgetTerms,
    change_budget,
    delete_budget,
)
from tenants.billing.budgets.queries import find_budget, find_webhook_secret, read_page_of_budgets
from tenants.billing.budgets.redis_sync import sync_spend_to_redis
from tenants.billing.rating.operations import rate_tenant
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.identity.member_lifecycle import remove_member
from tenants.identity.teams.operations import add_team_member, remove_team_member
from tenants.models import AlertDelivery, AuditEntry, BudgetAlert
from tests.fakes.billing import (
    NOW,
    hard_budgets,
    ingest_completion,
    make_budget,
    make_customer,
    read_balances,
)
from tests.fakes.server_thread import serving_in_thread
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.fixtures.users import make_team
from tests.integration.tenants.webhook_receiver import Receiver

# Costs 6,000 micros in the fast tier.
COSTLY_USAGE = {"prompt_tokens": 0, "cached_tokens": 0, "generated_tokens": 10_000}
COST = 6_000
# The maximum cost of a fast completion in micros: 2,000 prompt tokens and 512 generated ones.
MAX_COST = 608
NEW_TERMS = BudgetTerms(limit_micros=7)
AN_HOUR_AGO = NOW - timedelta(hours=1)


@pytest.fixture
def company() -> Company:
    company = make_company("budgets", ACME_PEOPLE)
    make_customer(company)
    return company


@pytest.fixture(autouse=True)
def _mails_in_memory(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []


def spend(company: Company, times: int = 1, *, at: datetime = AN_HOUR_AGO) -> None:
    for number in range(times):
        used_at = at + timedelta(seconds=number)
        ingest_completion(company, company.developer, used_at, **COSTLY_USAGE)
    rate_tenant(company.tenant_id, now=NOW)


def test_a_hard_budget_is_published_with_its_prices(company: Company) -> None:
    budget = make_budget(company, limit_micros=5_000_000)

    spending = read_snapshot(tenant_id=company.tenant_id, now=NOW).spending

    assert [(b.budget_id, b.limit_micros, b.scope) for b in spending.budgets] == [
        (str(budget.id), 5_000_000, BudgetScope.TENANT)
    ]
    assert len(spending.prices) == 1


def test_a_soft_budget_is_not_published(company: Company) -> None:
    make_budget(company, is_hard=False)

    assert hard_budgets(company) == {}


def test_a_teams_budget_covers_its_current_members(company: Company) -> None:
    team_id = UUID(make_team(company))
    ada = company.developer.user_id
    budget = make_budget(company, holder=BudgetTarget(BudgetScope.TEAM, team_id))
    add_team_member(actor=company.platform, team_id=team_id, user_id=ada, now=NOW)
    assert hard_budgets(company) == {str(budget.id): (ada,)}

    remove_team_member(actor=company.platform, team_id=team_id, user_id=ada, now=NOW)

    assert hard_budgets(company) == {str(budget.id): ()}


def test_a_budget_shows_the_amount_spent(company: Company) -> None:
    ada = BudgetTarget(BudgetScope.USER, UUID(company.developer.user_id))
    alice = BudgetTarget(BudgetScope.USER, UUID(company.administrator.user_id))
    budgets = [make_budget(company), *(make_budget(company, holder=h) for h in (ada, alice))]
    spend(company, 3)

    actor = company.administrator.actor
    spent_micros = [find_budget(actor=actor, budget_id=b.id, now=NOW).spent_micros for b in budgets]

    assert spent_micros == [3 * COST, 3 * COST, 0]


def test_budgets_count_the_same_amount_as_the_ledger(company: Company) -> None:
    budget = make_budget(company)
    spend(company, 7)

    status = find_budget(actor=company.administrator.actor, budget_id=budget.id, now=NOW)

    assert status.spent_micros == -read_balances(company.tenant_id)["revenue.tokens"]


def test_spending_from_before_the_budget_is_synced_to_redis(company: Company) -> None:
    spend(company, 3)
    budget = make_budget(company)

    sync_spend_to_redis(company.tenant_id, now=NOW)

    redis_key = spend_key(company.tenant_id, str(budget.id), "2026-10")
    # `raised` is the part of `used` that the ledger has added.
    assert connect_to_redis().hmget(redis_key, "used", "raised") == [str(3 * COST).encode()] * 2


def test_a_larger_amount_in_redis_is_not_overwritten(company: Company) -> None:
    budget = make_budget(company)
    redis_key = spend_key(company.tenant_id, str(budget.id), "2026-10")
    connect_to_redis().hset(redis_key, "used", str(10**9))
    spend(company)

    sync_spend_to_redis(company.tenant_id, now=NOW)

    assert connect_to_redis().hgetall(redis_key) == {b"used": str(10**9).encode()}


@pytest.mark.parametrize("is_stale", [False, True])
def test_only_a_change_of_the_current_version_is_accepted(company: Company, is_stale: bool) -> None:
    budget = make_budget(company)
    actor = company.administrator.actor
    changed_budget = change_budget(
        actor=actor, budget_id=budget.id, terms=NEW_TERMS, version=budget.version, now=NOW
    )
    assert (changed_budget.limit_micros, changed_budget.version) == (7, 2)

    if is_stale:
        with pytest.raises(Conflict):
            delete_budget(actor=actor, budget_id=budget.id, version=1, now=NOW)
    else:
        delete_budget(actor=actor, budget_id=budget.id, version=2, now=NOW)
        assert hard_budgets(company) == {}


def test_each_change_is_audited(company: Company) -> None:
    budget = make_budget(company, limit_micros=5)
    actor = company.administrator.actor
    change_budget(actor=actor, budget_id=budget.id, terms=NEW_TERMS, version=1, now=NOW)
    delete_budget(actor=actor, budget_id=budget.id, version=2, now=NOW)

    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(target=f"budget:{budget.id}").order_by("sequence")
        actions = [entry.action for entry in entries]
        assert actions == ["budget.created", "budget.changed", "budget.deleted"]
        before, after = entries[1].before or {}, entries[1].after or {}
        assert (before["limit_micros"], after["limit_micros"]) == (5, 7)


def test_a_second_budget_for_the_same_target_is_a_conflict(company: Company) -> None:
    make_budget(company)

    with pytest.raises(Conflict):
        make_budget(company)


def test_a_tenant_without_a_plan_cannot_have_a_budget(cast: Cast) -> None:
    with pytest.raises(Conflict):
        make_budget(cast.globex)


def test_a_removed_member_cannot_get_a_budget(company: Company) -> None:
    user_id = company.developer.user_id
    remove_member(actor=company.administrator.actor, user_id=user_id, reason="Left.", now=NOW)

    with pytest.raises(InvalidValue):
        make_budget(company, holder=BudgetTarget(BudgetScope.USER, UUID(user_id)))


def test_users_and_teams_of_another_tenant_cannot_get_a_budget(
    company: Company, cast: Cast
) -> None:
    for scope, holder_id in (
        (BudgetScope.USER, UUID(cast.globex.developer.user_id)),
        (BudgetScope.TEAM, UUID(make_team(cast.globex))),
        (BudgetScope.TEAM, uuid4()),
    ):
        with pytest.raises(InvalidValue):
            make_budget(company, holder=BudgetTarget(scope, holder_id))


def test_another_tenants_budget_is_not_found(company: Company, cast: Cast) -> None:
    budget = make_budget(company)
    bob = cast.globex.administrator.actor

    with pytest.raises(NotFound):
        find_budget(actor=bob, budget_id=budget.id, now=NOW)
    with pytest.raises(NotFound):
        find_webhook_secret(actor=bob, budget_id=budget.id, now=NOW)
    with pytest.raises(NotFound):
        delete_budget(actor=bob, budget_id=budget.id, version=1, now=NOW)
    assert read_page_of_budgets(actor=bob, limit=10, cursor=None, now=NOW).rows == []


def test_a_developer_cannot_list_budgets(company: Company) -> None:
    with pytest.raises(Forbidden):
        read_page_of_budgets(actor=company.developer.actor, limit=10, cursor=None, now=NOW)


@pytest.mark.parametrize(
    ("spent", "percents"),
    [(0, []), (499, []), (500, [50]), (799, [50]), (800, [50, 80]), (1_500, [50, 80, 100])],
)
def test_thresholds_are_reached_at_their_percent(spent: int, percents: list[int]) -> None:
    assert find_crossed_thresholds(spent, 1_000) == percents


def test_owners_and_billing_are_alerted_once_at_each_threshold(company: Company) -> None:
    make_budget(company, limit_micros=4 * COST)
    for _ in range(6):  # the fifth and the sixth exceed the limit
        spend(company)
        deliver_due_alerts(company.tenant_id, now=NOW)
        deliver_due_alerts(company.tenant_id, now=NOW)

    subjects = [message.subject for message in mail.outbox if "olga@" in message.to[0]]
    parts = [subject.partition(": ")[2].partition(" of ")[0] for subject in subjects]
    assert parts == ["50%", "100%"]  # 80% and 100% are reached at once, and share a message
    assert {message.to[0].partition("@")[0] for message in mail.outbox} == {"olga", "bill"}
    with tenant_scope(company.tenant_id):
        assert sorted(BudgetAlert.objects.values_list("percent", flat=True)) == [50, 80, 100]


@pytest.mark.parametrize(("is_hard", "percents"), [(True, [50, 80, 100]), (False, [50, 80])])
def test_a_hard_budget_is_exhausted_if_a_completion_may_exceed_the_rest(
    company: Company, is_hard: bool, percents: list[int]
) -> None:
    budget = make_budget(company, limit_micros=COST + MAX_COST - 1, is_hard=is_hard)
    before = find_budget(actor=company.administrator.actor, budget_id=budget.id, now=NOW)

    spend(company)

    after = find_budget(actor=company.administrator.actor, budget_id=budget.id, now=NOW)
    assert (before.is_exhausted, after.is_exhausted) == (False, is_hard)
    assert [alert.percent for alert in after.alerts] == percents


def test_a_user_is_alerted_about_their_own_budget(company: Company) -> None:
    ada = BudgetTarget(BudgetScope.USER, UUID(company.developer.user_id))
    make_budget(company, limit_micros=COST, holder=ada)
    spend(company)

    deliver_due_alerts(company.tenant_id, now=NOW)

    assert company.developer.email in {message.to[0] for message in mail.outbox}


def test_a_failed_mail_is_shown_and_retried(company: Company, settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9  # nothing listens
    budget = make_budget(company, limit_micros=COST)
    spend(company)
    assert deliver_due_alerts(company.tenant_id, now=NOW) == 0
    actor = company.administrator.actor
    deliveries = find_budget(actor=actor, budget_id=budget.id, now=NOW).alerts[-1].deliveries
    assert {(d.num_attempts, d.last_error, d.delivered_at) for d in deliveries} == {
        (1, "The mail server did not accept the message (ConnectionRefusedError).", None)
    }

    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert deliver_due_alerts(company.tenant_id, now=NOW) == 0  # the retry is due a minute later
    assert deliver_due_alerts(company.tenant_id, now=NOW + timedelta(minutes=1)) == 2  # olga, bill

    deliveries = find_budget(actor=actor, budget_id=budget.id, now=NOW).alerts[-1].deliveries
    assert {(d.num_attempts, d.last_error, d.next_attempt_at) for d in deliveries} == {
        (2, "", None)
    }


def test_retries_have_increasing_delays_and_a_limit() -> None:
    waits = [compute_alert_backoff(attempts) for attempts in range(1, 21)]

    assert waits[:3] == [timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=4)]
    assert waits[-2:] == [timedelta(hours=6), None]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with serving_in_thread(receiver.server):
        yield receiver


def test_a_webhook_is_signed_for_its_receiver(
    company: Company, receiver: Receiver, settings: LazySettings
) -> None:
    settings.PRIVATE_TARGETS = [ip_network("127.0.0.0/8")]
    budget = make_budget(company, limit_micros=COST, webhook_url=receiver.url)
    spend(company)

    deliver_due_alerts(company.tenant_id, now=NOW)

    ((headers, body),) = receiver.received
    secret = find_webhook_secret(
        actor=company.administrator.actor, budget_id=budget.id, now=NOW
    ).removeprefix("whsec_")  # as in the specification Standard Webhooks
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = hmac.digest(base64.b64decode(secret), signed, hashlib.sha256)
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(expected).decode()}"
    assert json.loads(body)["data"]["percent"] == 100


@pytest.mark.parametrize("status", [500, 302, 404])
def test_a_failed_webhook_is_retried_with_the_same_id(
    company: Company, receiver: Receiver, settings: LazySettings, status: int
) -> None:
    settings.PRIVATE_TARGETS = [ip_network("127.0.0.0/8")]
    receiver.statuses = [status]
    make_budget(company, limit_micros=COST, webhook_url=receiver.url)
    spend(company)

    deliver_due_alerts(company.tenant_id, now=NOW)
    deliver_due_alerts(company.tenant_id, now=NOW + timedelta(minutes=1))

    first, second = (headers["webhook-id"] for headers, _ in receiver.received)
    assert first == second
    with tenant_scope(company.tenant_id):
        assert not AlertDelivery.objects.filter(delivered_at__isnull=True).exists()


# The last address contains 10.0.0.1, translated to IPv6 (NAT64).
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.1.2.3", "169.254.169.254", "[::1]", "[64:ff9b::a00:1]"]
)
def test_a_webhook_to_an_internal_address_is_refused(company: Company, host: str) -> None:
    make_budget(company, limit_micros=COST, webhook_url=f"https://{host}/hook")
    spend(company)

    deliver_due_alerts(company.tenant_id, now=NOW)

    with tenant_scope(company.tenant_id):
        hook = AlertDelivery.objects.get(channel="webhook")
    assert hook.last_error == "The address is not public, or the connection is not encrypted."


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.com", "ftp://example.com", "https://", "https://a:b@example.com", "x"),
        *("https://example.com/a b", "https://example.com:99999/", f"https://e.com/{'a' * 500}"),
    ],
)
def test_an_invalid_webhook_url_is_rejected(company: Company, url: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        make_budget(company, webhook_url=url)

    assert exc_info.value.field == "webhook_url"


def test_spending_of_an_earlier_month_does_not_count(company: Company) -> None:
    budget = make_budget(company, limit_micros=COST)
    spend(company, at=datetime(2026, 10, 31, 23, 59, tzinfo=UTC))
    november = datetime(2026, 11, 1, tzinfo=UTC)

    status = find_budget(actor=company.administrator.actor, budget_id=budget.id, now=november)

    assert (status.month, status.spent_micros) == (date(2026, 11, 1), 0)


def test_the_audit_log_contains_no_webhook_secret(company: Company) -> None:
    budget = make_budget(company, webhook_url=f"https://{secrets.token_hex(4)}.example/")
    secret = find_webhook_secret(actor=company.administrator.actor, budget_id=budget.id, now=NOW)

    with tenant_scope(company.tenant_id):
        audit_texts = [str(entry.after) + entry.target for entry in AuditEntry.objects.all()]
    assert not any(secret.removeprefix("whsec_") in text for text in audit_texts)

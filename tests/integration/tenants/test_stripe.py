"""Usage is reported to Stripe once despite failures; a reconciliation lists differences."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from threading import Thread

import pytest
import structlog
from django.conf import LazySettings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.billing.pricing import TIER_LINES
from tenants.billing.rating.operations import rate_tenant
from tenants.billing.stripe.client import HttpStripe
from tenants.billing.stripe.meter_events import build_event_name, choose_event_time
from tenants.billing.stripe.operations import (
    compute_stripe_backoff,
    ensure_customer,
    report_all_tenants,
    send_due_events,
)
from tenants.billing.stripe.port import (
    MeterEvent,
    StripeOutcomeUnknown,
    StripeRejected,
    StripeUnreachable,
)
from tenants.billing.stripe.reconciliation import MeterComparison, reconcile_month
from tenants.models import StripeCustomer, StripeEvent
from tests.fakes.billing import ingest_completion, make_customer
from tests.fakes.stripe_server import SECRET, Fault, StripeServer, stripe_server
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company

NOW = datetime(2026, 10, 20, 12, tzinfo=UTC)
USED_AT = NOW - timedelta(hours=3)
OCTOBER = date(2026, 10, 1)
METERS = tuple(build_event_name(line) for line in TIER_LINES)
EVENT = MeterEvent("i", METERS[0], customer_id="cus_0000", quantity=1, occurred_at=NOW)
USED_TOKENS = {"prompt_tokens": 1_900, "cached_tokens": 1_880, "generated_tokens": 12}
LOST = Fault(status=None, is_processed=True)  # Stripe has the event, but the response is lost
UNPROCESSED = [Fault(status) for status in (500, 503, 429, 409, None)]  # None: no response
HOUR = timedelta(hours=1)


@pytest.fixture
def server() -> Iterator[StripeServer]:
    with stripe_server(now=NOW, meters=METERS) as server:
        yield server


@pytest.fixture
def stripe(server: StripeServer) -> HttpStripe:
    return HttpStripe(server.url, SECRET, timeout_s=60.0)


@pytest.fixture
def company(stripe: HttpStripe) -> Company:
    """Make a customer with usage that is not sent yet."""
    company = make_company("stripe", ACME_PEOPLE)
    make_customer(company)
    ensure_customer(stripe, company.tenant_id, now=NOW)
    add_usage(company)
    return company


def add_usage(company: Company, at: datetime = USED_AT) -> None:
    ingest_completion(company, company.developer, at, **USED_TOKENS)
    rate_tenant(company.tenant_id, now=NOW)


def sum_events_by_name(server: StripeServer) -> dict[str, int]:
    totals: dict[str, int] = {}
    for event in server.events:
        totals[event.event_name] = totals.get(event.event_name, 0) + event.value
    return totals


def find_differences(stripe: HttpStripe, company: Company) -> list[MeterComparison]:
    comparisons = reconcile_month(stripe, company.tenant_id, month=OCTOBER)
    assert len(comparisons) == len(METERS)
    return [comparison for comparison in comparisons if not comparison.is_reconciled]


USED_TOKENS_BY_EVENT = {
    "caret_fast_prompt_tokens": 20,  # the prompt tokens that were not cached
    "caret_fast_cached_prompt_tokens": 1_880,
    "caret_fast_generated_tokens": 12,
}


def test_posted_usage_is_reported(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    assert send_due_events(stripe, company.tenant_id, now=NOW) == 3

    assert sum_events_by_name(server) == USED_TOKENS_BY_EVENT
    assert find_differences(stripe, company) == []


def test_sent_events_are_not_sent_again(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    send_due_events(stripe, company.tenant_id, now=NOW)
    calls_before = server.num_calls

    send_due_events(stripe, company.tenant_id, now=NOW + timedelta(days=2))

    assert server.num_calls == calls_before


@pytest.mark.parametrize("fault", [*UNPROCESSED, Fault(500, is_processed=True), LOST])
def test_usage_is_counted_once_despite_failures(
    company: Company, stripe: HttpStripe, server: StripeServer, fault: Fault
) -> None:
    server.faults = [fault] * 4  # the first calls for all three events, and one retry

    send_due_events(stripe, company.tenant_id, now=NOW)
    server.now = NOW + HOUR
    send_due_events(stripe, company.tenant_id, now=NOW + HOUR)
    send_due_events(stripe, company.tenant_id, now=NOW + 2 * HOUR)

    assert sum_events_by_name(server) == USED_TOKENS_BY_EVENT
    assert find_differences(stripe, company) == []


def test_an_unreachable_server_is_retried_until_it_responds(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    unreachable = HttpStripe("http://127.0.0.1:9", SECRET)  # nothing listens on this port
    for hours in range(0, 48, 2):
        assert send_due_events(unreachable, company.tenant_id, now=NOW + hours * HOUR) == 0

    server.now = NOW + 50 * HOUR
    assert send_due_events(stripe, company.tenant_id, now=server.now) == 3
    assert sum_events_by_name(server) == USED_TOKENS_BY_EVENT


def test_an_event_that_may_have_arrived_is_not_resent_after_24_hours(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    server.faults = [LOST] * 3
    send_due_events(stripe, company.tenant_id, now=NOW)
    server.now = NOW + 25 * HOUR

    send_due_events(stripe, company.tenant_id, now=server.now)

    # After 24 hours, Stripe would count a repeated event twice. So each meter's event is stuck.
    assert sum_events_by_name(server) == USED_TOKENS_BY_EVENT
    assert {comparison.stuck for comparison in find_differences(stripe, company)} == {1}


def test_usage_missing_at_stripe_is_reported(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    send_due_events(stripe, company.tenant_id, now=NOW)
    lost = server.events.pop()

    (difference,) = find_differences(stripe, company)

    assert (difference.event_name, difference.booked - difference.stripe_quantity) == (
        lost.event_name,
        lost.value,
    )


def test_duplicate_usage_at_stripe_is_reported(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    send_due_events(stripe, company.tenant_id, now=NOW)
    server.events.append(server.events[0])

    (difference,) = find_differences(stripe, company)

    assert difference.stripe_quantity == 2 * difference.booked


def test_a_rejected_event_keeps_its_error_and_is_not_retried(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    server.meters = METERS[1:]  # the first meter does not exist at Stripe

    assert send_due_events(stripe, company.tenant_id, now=NOW) == 2

    with tenant_scope(company.tenant_id):
        event = StripeEvent.objects.get(sent_at__isnull=True)
    assert event.next_attempt_at is None
    assert event.last_error == "Stripe responded with status 400 (no_meter)."


def test_an_error_about_a_wrong_key_does_not_contain_the_key(server: StripeServer) -> None:
    wrong_client = HttpStripe(server.url, "sk_wrong_secret")

    with pytest.raises(StripeRejected) as exc_info:
        wrong_client.create_customer(idempotency_key="k", name="Acme", tenant_id="t")

    assert "sk_wrong" not in str(exc_info.value)


@pytest.mark.parametrize(
    ("fault", "error_class"),
    [
        (Fault(500), StripeOutcomeUnknown),
        (Fault(429), StripeUnreachable),  # too many requests: Stripe did not process this one
        (LOST, StripeOutcomeUnknown),
    ],
)
def test_errors_tell_whether_an_event_may_have_arrived(
    stripe: HttpStripe, server: StripeServer, fault: Fault, error_class: type[Exception]
) -> None:
    server.faults = [fault]

    with pytest.raises(error_class):
        stripe.send_event(EVENT)


def test_after_a_timeout_an_event_may_have_arrived(server: StripeServer) -> None:
    impatient = HttpStripe(server.url, SECRET, timeout_s=0.1)
    server.faults = [Fault(status=None, delay_s=60.0)]

    with pytest.raises(StripeOutcomeUnknown, match="TimeoutError"):
        impatient.send_event(EVENT)


def test_a_customer_is_created_once_despite_failures(
    stripe: HttpStripe, server: StripeServer
) -> None:
    company = make_company("stripe", {})
    make_customer(company)
    server.faults = [LOST]
    with pytest.raises(StripeOutcomeUnknown):
        ensure_customer(stripe, company.tenant_id, now=NOW)

    first = ensure_customer(stripe, company.tenant_id, now=NOW)
    second = ensure_customer(stripe, company.tenant_id, now=NOW)

    assert first == second
    assert len(server.customers) == 1


def test_usage_posted_before_the_customer_existed_is_reported(
    stripe: HttpStripe, server: StripeServer
) -> None:
    company = make_company("stripe", ACME_PEOPLE)
    make_customer(company)
    add_usage(company)

    ensure_customer(stripe, company.tenant_id, now=NOW)
    send_due_events(stripe, company.tenant_id, now=NOW)

    assert sum_events_by_name(server) == USED_TOKENS_BY_EVENT


def test_an_event_has_the_time_nearest_to_noon_that_is_neither_too_old_nor_in_the_future() -> None:
    """Caret sends no time that is more than 30 days old. Stripe accepts 35 days."""
    assert choose_event_time(date(2026, 1, 1), NOW) == NOW - timedelta(days=30)  # noon is too old
    assert choose_event_time(NOW.date(), NOW - 2 * HOUR) == NOW - 2 * HOUR  # noon lies ahead
    assert choose_event_time(date(2026, 10, 3), NOW) == datetime(2026, 10, 3, 12, tzinfo=UTC)


def test_a_late_record_is_accepted_by_stripe(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    send_due_events(stripe, company.tenant_id, now=NOW)
    add_usage(company, datetime(2026, 10, 1, tzinfo=UTC))

    assert send_due_events(stripe, company.tenant_id, now=NOW) == 3
    assert find_differences(stripe, company) == []


def test_concurrent_workers_send_each_event_once(
    company: Company, stripe: HttpStripe, server: StripeServer
) -> None:
    calls_before = server.num_calls

    def send() -> None:
        try:
            send_due_events(stripe, company.tenant_id, now=NOW)
        finally:
            connection.close()

    workers = [Thread(target=send) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert server.num_calls == calls_before + len(USED_TOKENS_BY_EVENT)
    assert sum_events_by_name(server) == USED_TOKENS_BY_EVENT


def test_each_tenants_usage_is_reported_separately(
    company: Company, stripe: HttpStripe, server: StripeServer, cast: Cast
) -> None:
    other_company = make_company("stripe", ACME_PEOPLE)
    make_customer(other_company)
    ensure_customer(stripe, other_company.tenant_id, now=NOW)
    add_usage(other_company)
    for tenant in (company, other_company):
        send_due_events(stripe, tenant.tenant_id, now=NOW)

    assert find_differences(stripe, company) == find_differences(stripe, other_company) == []
    with tenant_scope(cast.globex.tenant_id):
        assert not StripeEvent.objects.exists()
        assert not StripeCustomer.objects.exists()


def test_one_tenants_failure_does_not_affect_another(
    server: StripeServer, stripe: HttpStripe
) -> None:
    failing, other = [make_company("stripe", ACME_PEOPLE) for _ in range(2)]
    for tenant in (failing, other):
        make_customer(tenant)
    with tenant_scope(failing.tenant_id):
        # Create this row before the usage: events are queued only for a tenant with such a row.
        StripeCustomer.objects.create(
            tenant_id=failing.tenant_id, customer_id="cus_unknown", created_at=NOW
        )
    for tenant in (failing, other):
        add_usage(tenant)

    report_all_tenants(stripe, now=NOW)

    with tenant_scope(failing.tenant_id):
        events = list(StripeEvent.objects.all())
    assert len(events) == len(USED_TOKENS_BY_EVENT)
    assert {(event.sent_at, event.last_error) for event in events} == {
        (None, "Stripe responded with status 400 (resource_missing).")
    }
    assert find_differences(stripe, other) == []


class _FailingForOneTenant(HttpStripe):
    """Raises an unexpected error for one tenant."""

    def __init__(self, server: StripeServer, tenant_id: str) -> None:
        super().__init__(server.url, SECRET, timeout_s=60.0)
        self._tenant_id = tenant_id

    def create_customer(self, *, idempotency_key: str, name: str, tenant_id: str) -> str:
        if tenant_id == self._tenant_id:
            raise ZeroDivisionError("planted")
        return super().create_customer(
            idempotency_key=idempotency_key, name=name, tenant_id=tenant_id
        )


def test_an_unexpected_error_of_one_tenant_is_logged_and_stops_no_other(
    server: StripeServer, stripe: HttpStripe
) -> None:
    first, second = [make_company("stripe", ACME_PEOPLE) for _ in range(2)]
    for tenant in (first, second):
        make_customer(tenant)
        add_usage(tenant)

    with structlog.testing.capture_logs() as logs:
        report_all_tenants(_FailingForOneTenant(server, first.tenant_id), now=NOW)

    assert find_differences(stripe, second) == []
    tenant_logs = [log for log in logs if log.get("tenant_id") == first.tenant_id]
    assert [(log["event"], log["error"]) for log in tenant_logs] == [
        ("stripe.not_reported", "ZeroDivisionError")
    ]


def test_retry_delays_grow_to_an_hour() -> None:
    delays = [compute_stripe_backoff(attempt) for attempt in (1, 2, 30)]

    assert delays == [timedelta(minutes=1), timedelta(minutes=2), HOUR]


def test_the_reconciliation_fails_if_anything_differs(
    company: Company, server: StripeServer, settings: LazySettings, stripe: HttpStripe
) -> None:
    settings.STRIPE_KEY, settings.STRIPE_URL = SECRET, server.url
    out = StringIO()
    with pytest.raises(CommandError, match="3 meters differ"):
        call_command("reconcile_stripe", "--month=2026-10", tenant=company.slug, stdout=out)
    send_due_events(stripe, company.tenant_id, now=NOW)

    call_command("reconcile_stripe", "--month=2026-10", tenant=company.slug, stdout=out)

    assert "Ledger and Stripe agree." in out.getvalue()


def test_the_reconciliation_needs_a_stripe_key(settings: LazySettings) -> None:
    settings.STRIPE_KEY = None

    with pytest.raises(CommandError, match="CARET_STRIPE_KEY"):
        call_command("reconcile_stripe", "--month=2026-10", tenant="nobody", stdout=StringIO())


def test_the_reconciliation_rejects_an_unknown_tenant(settings: LazySettings) -> None:
    settings.STRIPE_KEY = SECRET

    with pytest.raises(CommandError, match="no tenant"):
        call_command("reconcile_stripe", "--month=2026-10", tenant="nobody", stdout=StringIO())

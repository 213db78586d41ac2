"""The first page of the console: seats, acceptance, cost, alerts and setup."""

import base64
import re
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.billing.budgets.operations import BudgetTerms, change_budget
from tenants.billing.rating.operations import rate_tenant
from tenants.identity.api_keys.scopes import KeyScope
from tenants.models import ApiKey, AuditSink, IdentityProvider
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.privacy.retention.operations import set_rule
from tests.fakes import billing
from tests.fixtures.companies import (
    ACME_PEOPLE,
    GLOBEX_PEOPLE,
    Company,
    make_company,
    make_key,
    make_service_key,
)
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries
from tests.integration.console.pages.usage_rows import add_requests, make_colleagues, roll_up

# The severity of an alert, "bad" or "warn", and its text.
_ALERT = re.compile(r'class="alert-line alert-(\w+)".*?<span>([^<]+?)\s*<', re.DOTALL)
# The name of a step that is done. It stands in the same list item as the mark "step-done".
_DONE = re.compile(r'step-done">(?:(?!<li).)*?class="name">([^<]+?) *<', re.DOTALL)
# The label of a figure, which may be a link, and its value.
_FIGURE = re.compile(
    r'<dt>(?:<a href="[^"]*">)?([^<]+)(?:</a>)?</dt>\s*<dd><span class="figure-value">([^<]*)<'
)


@pytest.fixture
def company() -> Company:
    return billing.make_old_customer(datetime(2026, 9, 1, tzinfo=UTC))


def summary_page(client: Client) -> str:
    return client.get("/").content.decode()


def list_alerts(client: Client) -> list[tuple[str, str]]:
    """Return the severity and the text of each alert, in their order on the page."""
    return _ALERT.findall(summary_page(client))


def read_figures(page: str) -> dict[str, str]:
    return dict(_FIGURE.findall(page))


def make_certificate(expires_at: datetime) -> str:
    """Return a self-signed certificate: DER, encoded in base64."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    begins_at = expires_at - timedelta(days=365)
    signed = (
        builder.not_valid_before(begins_at).not_valid_after(expires_at).sign(key, hashes.SHA256())
    )
    return base64.b64encode(signed.public_bytes(serialization.Encoding.DER)).decode()


def add_provider(company: Company, *certificates: str) -> None:
    with tenant_scope(company.tenant_id):
        IdentityProvider.objects.create(
            tenant_id=company.tenant_id,
            protocol="saml",
            issuer="https://idp.example",
            client_id="",
            sealed_secret=b"",
            sso_url="https://idp.example/sso",
            certificates="\n".join(certificates),
            created_at=timezone.now(),
        )


def add_failing_sink(company: Company) -> None:
    now = timezone.now()
    with tenant_scope(company.tenant_id):
        AuditSink.objects.create(
            tenant_id=company.tenant_id,
            kind="webhook",
            name="Splunk",
            origin="https://siem.example",
            sealed=b"",
            created_at=now,
            delivered_sequence=10**6,  # no entry waits, so nothing is sent to it
            failed_since=now,
            last_error="It did not respond.",
            next_attempt_at=now + timedelta(days=1),
        )


def test_seats_whose_users_made_requests_are_active(company: Company, sign_in: SignIn) -> None:
    people = [company.developer, *make_colleagues(company, 5)]
    for person in people:
        add_requests(company, person, num=2, accepted=1)
    roll_up(company)

    page = summary_page(sign_in(company.administrator))

    # The ten members are the five of the company and five colleagues.
    assert read_figures(page)["Active seats"] == "6 of 10"
    assert "4 idle seats" in page
    assert read_figures(page)["Acceptance rate"] == "50.0%"


def test_the_cost_equals_that_of_the_billing_page(
    stopped_clock: datetime, company: Company, sign_in: SignIn
) -> None:
    now = stopped_clock
    billing.ingest_completion(company, company.developer, now, generated_tokens=2_000_000)
    rate_tenant(company.tenant_id, now=now)
    client = sign_in(company.people[Role.BILLING])

    cost = read_figures(summary_page(client))["Cost this month"]

    (total,) = re.findall(
        r'<dt>Total</dt>\s*<dd><span class="figure-value">([^<]*)<',
        client.get("/billing").content.decode(),
    )
    assert cost == total != "€0.00"


@pytest.mark.parametrize("role", list(Role))
def test_each_role_has_its_first_page(company: Company, sign_in: SignIn, role: Role) -> None:
    add_requests(company, company.developer)
    roll_up(company)

    page = summary_page(sign_in(company.people[role]))

    # A developer gets the performance of their own requests. Other roles get the summary.
    is_own_performance = role is Role.DEVELOPER
    assert ("First token p99, inline" in page) == is_own_performance
    assert ("Active seats" in page) != is_own_performance
    assert ('href="/performance"' in page) != is_own_performance


def test_an_empty_summary_names_the_period_without_requests(
    company: Company, sign_in: SignIn
) -> None:
    page = summary_page(sign_in(company.administrator))

    assert ">No requests in the last 30 days<" in page


def test_the_summary_needs_few_queries(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.administrator)

    with few_queries():
        summary_page(client)


def test_a_tenant_without_faults_has_no_alerts(company: Company, sign_in: SignIn) -> None:
    add_provider(company, make_certificate(timezone.now() + timedelta(days=90)))

    assert list_alerts(sign_in(company.administrator)) == []


def test_each_fault_is_an_alert(company: Company, sign_in: SignIn) -> None:
    now = timezone.now()
    add_provider(company, make_certificate(now + timedelta(days=10)))
    make_key(company, company.developer)
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(kind="live").update(leaked_at=now)
    make_service_key(company, KeyScope.INFERENCE, expires_at=now + timedelta(days=5))
    add_failing_sink(company)

    alerts = list_alerts(sign_in(company.administrator))

    assert alerts == [
        ("bad", "1 API key was found in public. We revoked it."),
        ("bad", "We cannot send the audit log to 1 destination."),
        ("warn", "The certificate of your identity provider expires soon."),
        ("warn", "1 service key expires soon."),
    ]
    assert list_alerts(sign_in(company.people[Role.BILLING])) == []
    assert list_alerts(sign_in(make_company("hooli", ACME_PEOPLE).administrator)) == []


def test_a_second_certificate_that_expires_later_prevents_the_alert(
    company: Company, sign_in: SignIn
) -> None:
    now = timezone.now()
    expiring, successor = (make_certificate(now + timedelta(days=days)) for days in (5, 400))
    add_provider(company, expiring, successor)

    assert list_alerts(sign_in(company.administrator)) == []


@pytest.mark.parametrize("is_per_seat", [False, True])
def test_a_used_up_budget_is_an_alert_until_its_limit_changes(
    stopped_clock: datetime, company: Company, sign_in: SignIn, is_per_seat: bool
) -> None:
    now = stopped_clock
    num_seats = len(company.people) if is_per_seat else 1
    budget = billing.make_budget(
        company, limit_micros=1_000_000 // num_seats, is_hard=False, is_per_seat=is_per_seat
    )
    # The completion costs about 1.20 EUR, which is between the two limits.
    billing.ingest_completion(company, company.developer, now, generated_tokens=2_000_000)
    rate_tenant(company.tenant_id, now=now)
    client = sign_in(company.people[Role.BILLING])

    assert list_alerts(client) == [("bad", "1 budget is used up.")]
    change_budget(
        actor=company.platform,
        budget_id=budget.id,
        terms=BudgetTerms(1_500_000 // num_seats, is_hard=False, is_per_seat=is_per_seat),
        version=budget.version,
        now=now,
    )
    assert list_alerts(client) == []


def test_setting_a_retention_period_completes_its_step(sign_in: SignIn) -> None:
    company = make_company("initech", GLOBEX_PEOPLE)
    client = sign_in(company.administrator)
    before = summary_page(client)

    set_rule(
        actor=company.administrator.actor,
        data_class=DataClass.USAGE,
        days=DATA_CLASSES[DataClass.USAGE].min_days,
        reason="Data protection officer.",
        expected_version=0,
        now=timezone.now(),
    )

    assert "Set retention" in before
    assert "Set retention" not in summary_page(client)
    assert "Set retention" in _DONE.findall(client.get("/onboarding").content.decode())

"""The list of seats, and the setting for the smallest group whose figures reports show."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import ApiKey, AuditEntry, Tenant
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company, make_key
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries
from tests.integration.console.pages.usage_rows import add_requests, roll_up

pytestmark = pytest.mark.usefixtures("stopped_clock")  # so that no month ends during a test


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def client(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the administrator's browser."""
    return sign_in_with_step_up(company.administrator)


def test_seats_are_listed_without_figures_until_an_administrator_shows_single_users(
    company: Company, client: Client
) -> None:
    add_requests(company, company.developer, num=3, accepted=1, at=timezone.now())
    roll_up(company)

    with few_queries():
        hidden = client.get("/members/seats").content.decode()
    saved = client.post("/privacy/small-groups", {"min_users": "1", "reason": "agreed"})
    with few_queries():
        page = client.get("/members/seats").content.decode()
    lines = client.get("/members/seats", {"as": "csv", "q": "ada@"}).content.decode().splitlines()
    by_user = client.get("/usage", {"group_by": "user"}).content.decode()

    assert "at least 5 users" in hidden
    assert "Requests this month" not in hidden
    assert saved["Location"] == "/privacy/small-groups"
    assert "Requests this month" in page
    assert lines[0].split(",")[:2] == ["email", "name"]
    assert lines[1].startswith(f"{company.developer.email},Ada,developer,")
    assert ",3," in lines[1]  # requests
    assert company.developer.email in by_user
    with tenant_scope(company.tenant_id):
        assert AuditEntry.objects.filter(action="reports.min_group_size_changed").exists()


def test_the_idle_filter_omits_a_member_whose_key_was_used(
    company: Company, client: Client
) -> None:
    key = make_key(company, company.developer).key
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(lookup_id=key.lookup_id).update(last_used_at=timezone.now())

    page = client.get("/members/seats", {"activity": "idle"}).content.decode()

    assert re.findall(r'class="name"[^>]*>([^<]+)<', page) == ["Alice", "Audrey", "Bill", "Olga"]


@pytest.mark.parametrize("value", ["0", "1001", "many", ""])
def test_an_invalid_minimum_group_size_is_refused(
    company: Company, client: Client, value: str
) -> None:
    response = client.post("/privacy/small-groups", {"min_users": value, "reason": "x"})

    assert response.status_code == 400
    assert Tenant.objects.get(id=company.tenant_id).min_group_users == 5


def test_changing_the_minimum_group_size_needs_a_reason_and_the_permission(
    company: Company, client: Client, sign_in_with_step_up: SignIn
) -> None:
    auditor = sign_in_with_step_up(company.people[Role.AUDITOR])
    form = {"min_users": "2", "reason": ""}

    assert client.post("/privacy/small-groups", form).status_code == 400
    assert auditor.post("/privacy/small-groups", form | {"reason": "x"}).status_code == 403

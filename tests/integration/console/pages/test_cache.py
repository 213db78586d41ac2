"""The prefix cache's page: the hit rate, and purging."""

import csv
import io

import pytest
from django.test import Client

from caret.contracts.snapshot import SNAPSHOTS, decode_snapshot
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import redis_connection
from tenants.base.permissions import Role
from tenants.models import AuditEntry
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries
from tests.integration.console.pages.usage_rows import add_requests, make_colleagues, roll_up

pytestmark = pytest.mark.usefixtures("stopped_clock")  # so that no hour ends during a test
PURGERS = {Role.OWNER, Role.ADMINISTRATOR}


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE, is_published=True)


def read_published_epoch(company: Company) -> int:
    """Return the cache epoch in the tenant's snapshot. Each purge increases it by one."""
    data = redis_connection.connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data).cache_epoch


@pytest.mark.parametrize("role", list(Role))
def test_every_role_sees_the_page_and_only_owners_and_administrators_purge(
    company: Company, sign_in: SignIn, sign_in_with_step_up: SignIn, role: Role
) -> None:
    page = sign_in(company.people[role]).get("/cache")
    client = sign_in_with_step_up(
        company.people[role]
    )  # with a recent step-up, which purging requires

    assert page.status_code == 200
    assert ('href="/cache/purge"' in page.content.decode()) == (role in PURGERS)
    assert client.get("/cache/purge").status_code == (200 if role in PURGERS else 403)
    if role not in PURGERS:
        assert client.post("/cache/purge", {"reason": "x"}).status_code == 403
        assert read_published_epoch(company) == 0


@pytest.mark.parametrize("path", ["/cache", "/cache/purge"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"


def test_hit_rates_are_shown_by_language(company: Company, sign_in: SignIn) -> None:
    for person in make_colleagues(company, 5):  # figures of fewer users would be suppressed
        add_requests(company, person)
    roll_up(company)

    client = sign_in(company.administrator)

    with few_queries():
        page = client.get("/cache").content.decode()

    assert 'data-label="Hit rate">80.0%' in page  # 80 of 100 prompt tokens are cached
    assert (
        "Shared" in page
    )  # the page also shows the tenant's isolation, which is by default shared


def test_the_csv_file_lists_each_language_and_the_total(company: Company, sign_in: SignIn) -> None:
    for person in make_colleagues(company, 5):
        add_requests(company, person)
        add_requests(company, person, language="go")
    roll_up(company)

    answer = sign_in(company.administrator).get("/cache", {"as": "csv"})

    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))[:3]  # without the notes
    requests = {row["language"]: row["requests"] for row in rows}
    assert requests == {"go": "5", "python": "5", "total": "10"}


def test_another_tenant_does_not_see_the_usage(company: Company, sign_in: SignIn) -> None:
    add_requests(company, company.developer)
    roll_up(company)

    page = (
        sign_in(make_company("globex", GLOBEX_PEOPLE).administrator).get("/cache").content.decode()
    )

    assert "No usage in this period" in page


def test_purging_requires_a_step_up(company: Company, sign_in: SignIn) -> None:
    answer = sign_in(company.administrator).post("/cache/purge", {"reason": "a leak"})

    assert answer.status_code == 302
    # After the step-up, the page /account/resume/... sends the form again.
    assert "next=%2Faccount%2Fresume%2F" in answer["Location"]
    assert read_published_epoch(company) == 0


def test_a_purge_starts_an_epoch_and_is_audited(
    company: Company, sign_in_with_step_up: SignIn
) -> None:
    client = sign_in_with_step_up(company.administrator)

    page = client.post("/cache/purge", {"reason": "a leak"}, follow=True).content.decode()

    assert "Epoch 1 has started" in page
    assert read_published_epoch(company) == 1
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="tenant.cache_purged")
    assert (entry.reason, entry.target) == ("a leak", f"tenant:{company.slug}")


# A reason has at most 500 characters.
@pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\0b"])
def test_an_invalid_reason_purges_nothing(
    company: Company, sign_in_with_step_up: SignIn, reason: str
) -> None:
    answer = sign_in_with_step_up(company.administrator).post("/cache/purge", {"reason": reason})

    assert answer.status_code == 400
    assert 'class="wrong"' in answer.content.decode()
    assert read_published_epoch(company) == 0

"""Reports over the REST API: their fields, and the errors for invalid queries."""

import pytest
from django.test import Client
from django.utils import timezone

from tenants.usage.rollups.operations import roll_up_tenant
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.tenants.records import add_completion, add_outcome


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def developer(company: Company, sign_in: SignIn) -> Client:
    """Sign in a developer who has accepted one completion, and return their client."""
    add_outcome(company, add_completion(company), "accepted")
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=timezone.now())
    return sign_in(company.developer)


PERIOD = "start=2026-11-20&end=2026-11-21"  # the day of the completion


def test_the_usage_report_names_the_source_of_each_count(developer: Client) -> None:
    report = developer.get(f"/api/v1/reports/usage?{PERIOD}&group_by=language").json()

    (row,) = report["items"]
    assert (row["key"], row["users"], row["suppressed"]) == ("python", 1, None)
    assert row["counts"]["generated_tokens"] == report["total"]["counts"]["generated_tokens"] == 10
    assert report["sources"]["generated_tokens"] == "observed by the server"
    assert report["sources"]["accepted"] == "reported by the client"
    assert report["complete_until"] is not None
    assert (report["start"], report["end"]) == ("2026-11-20", "2026-11-21")


def test_the_quality_report_defines_each_of_its_metrics(developer: Client) -> None:
    prices = "prompt_price_micros=1000000&generated_price_micros=0"

    report = developer.get(f"/api/v1/reports/quality?{PERIOD}&{prices}").json()

    metrics = report["total"]["metrics"]
    assert (metrics["acceptance"], metrics["persistence_30"]) == (1, None)
    # At 1,000,000 micros a million tokens, the 100 prompt tokens cost 100 micros. Ten generated
    # tokens were accepted, so that a thousand cost 10,000 micros.
    assert metrics["cost_per_thousand_accepted_tokens"] == 10_000
    assert {definition["name"] for definition in report["definitions"]} == metrics.keys()
    assert report["definition_version"] == 1


def test_a_suppressed_total_gives_the_reason(
    developer: Client, company: Company, sign_in: SignIn
) -> None:
    report = sign_in(company.administrator).get(f"/api/v1/reports/quality?{PERIOD}").json()

    assert report["total"]["suppressed"] == "fewer users than the tenant's minimum"
    assert (report["total"]["counts"], report["total"]["metrics"]) == (None, None)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("start=2026-11-20&end=2026-11-20", "end"),
        ("start=2020-01-01", "end"),  # until today: too long
        ("start=0001-01-01&end=9999-12-31", "end"),
        ("start=yesterday", "start"),
        ("group_by=colour", "group_by"),
        ("prompt_price_micros=1", "generated_price_micros"),  # both prices are needed
        ("prompt_price_micros=-1&generated_price_micros=1", "prompt_price_micros"),
    ],
)
def test_an_invalid_query_is_rejected_with_the_fields_name(
    developer: Client, query: str, field: str
) -> None:
    response = developer.get(f"/api/v1/reports/quality?{query}")

    assert response.status_code == 422
    assert response.json()["field"] == field


def test_the_latest_representable_day_has_a_report(developer: Client) -> None:
    query = "start=9999-12-30&end=9999-12-31&group_by=day"

    assert developer.get(f"/api/v1/reports/usage?{query}").status_code == 200

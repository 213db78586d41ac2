"""A purge reports usage records that were deleted without a purge, even if new ones were added."""

from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import UsageRecord
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.tenants.test_retention import NOW, add_records_of_age, purge_usage


@pytest.fixture
def company() -> Company:
    return make_company("umbrella", ACME_PEOPLE)


def purge_and_list_reports(company: Company, now: datetime) -> list[int]:
    """Purge the records, and return the numbers of missing records that this purge reports."""
    with capture_logs() as logs:
        purge_usage(company, now)
    return [
        entry["records"] for entry in logs if entry["event"] == "retention.unexplained_deletion"
    ]


def test_missing_records_are_reported_despite_new_ones(company: Company) -> None:
    add_records_of_age(company, 100, 200, 300)  # ages at NOW, in days
    purge_usage(company)
    with tenant_scope(company.tenant_id):  # deletes one record without a purge
        UsageRecord.objects.filter(occurred_at__lt=NOW - timedelta(days=250)).delete()
    add_records_of_age(company, -1, -1, -1)  # a day after NOW, so after the last purge

    assert purge_and_list_reports(company, NOW + timedelta(days=2)) == [1]


def test_purged_and_new_records_are_not_reported_as_missing(company: Company) -> None:
    add_records_of_age(company, 100, 200, 500)
    first_reports = purge_and_list_reports(company, NOW)
    add_records_of_age(company, -1, 150)  # a new record, and one that arrives 150 days late

    # Records are kept for 400 days. The second purge deletes the one that is 200 days old at NOW.
    second_reports = purge_and_list_reports(company, NOW + timedelta(days=220))
    third_reports = purge_and_list_reports(company, NOW + timedelta(days=221))

    assert (first_reports, second_reports, third_reports) == ([], [], [])

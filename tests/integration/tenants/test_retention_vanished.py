"""Records deleted by anything other than a purge are reported, despite new records."""

from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import UsageRecord
from tests.fixtures.companies import ACME, Company, make_company
from tests.integration.tenants.test_retention import NOW, run_usage, use


@pytest.fixture
def company() -> Company:
    return make_company("umbrella", ACME)


def reported_missing(company: Company, now: datetime) -> list[int]:
    """Return the numbers of missing records that the next purge reports."""
    with capture_logs() as logs:
        run_usage(company, now)
    return [
        entry["records"] for entry in logs if entry["event"] == "retention.unexplained_deletion"
    ]


def test_missing_records_are_reported_despite_new_ones(company: Company) -> None:
    use(company, 100, 200, 300)
    run_usage(company)
    with tenant_scope(company.tenant_id):  # not by a purge
        UsageRecord.objects.filter(occurred_at__lt=NOW - timedelta(days=250)).delete()
    use(company, -1, -1, -1)

    assert reported_missing(company, NOW + timedelta(days=2)) == [1]


def test_purged_and_new_records_are_not_reported_as_missing(company: Company) -> None:
    use(company, 100, 200, 500)
    first = reported_missing(company, NOW)
    use(company, -1, 150)  # one of them late

    assert (first, reported_missing(company, NOW + timedelta(days=220))) == ([], [])
    assert reported_missing(company, NOW + timedelta(days=221)) == []

"""An index finds rejected and withheld completions, so that not all records are read."""

import re
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import UsageRecord
from tenants.policy.denials import count_denials
from tests.fixtures.companies import GLOBEX, Company, make_company
from tests.integration.tenants.records import NOON, completion
from tests.stack.services import Services

NUM_SERVED = 3000
INDEX = "usage_record_denied"


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX)


def row(company: Company, number: int, **fields: object) -> UsageRecord:
    return completion(company, at=NOON - timedelta(seconds=number + 1), **fields)


@pytest.fixture
def _with_many_records(company: Company, services: Services) -> None:
    denied_row = row(company, NUM_SERVED, finish_reason="error", error_code="path_excluded")
    failed_row = row(company, NUM_SERVED + 1, finish_reason="error", error_code="engine_failed")
    withheld = row(company, NUM_SERVED + 2, finish_reason="filtered", filter_reason="secret")
    served = [row(company, number) for number in range(NUM_SERVED)]
    with tenant_scope(company.tenant_id):
        UsageRecord.objects.bulk_create(
            [*served, denied_row, failed_row, withheld], batch_size=1000
        )
    with psycopg.connect(services.owner_database_url) as owner:
        owner.execute("ANALYZE tenants_usage_record")  # as autovacuum would do a minute later


def query_values(query: str, *values: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [str(value) for (value,) in cursor.fetchall()]


def list_partitions(company: Company) -> list[str]:
    """Return the partitions that contain records of the company. Empty ones need no index."""
    with tenant_scope(company.tenant_id):
        return query_values("SELECT DISTINCT tableoid::regclass::text FROM tenants_usage_record")


def find_index_of_partition(month: str) -> str:
    """Return the name of the month's part of the index, which Postgres chose."""
    (name,) = query_values(
        "SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_index ON indexrelid = inhrelid"
        " WHERE inhparent = %s::regclass AND indrelid = %s::regclass",
        INDEX,
        month,
    )
    return name


@pytest.mark.usefixtures("_with_many_records")
def test_denied_requests_are_found_by_their_partial_index(company: Company) -> None:
    with CaptureQueriesContext(connection) as queries:
        denials = count_denials(actor=company.administrator.actor, num_days=7, now=NOON)

    (query,) = [query["sql"] for query in queries if "error_code" in query["sql"]]
    with tenant_scope(company.tenant_id):
        plan = "\n".join(query_values(f"EXPLAIN {query}"))
    (month,) = list_partitions(company)
    assert sorted(denial.reason for denial in denials) == ["path_excluded", "secret"]
    assert re.search(rf"Index Scan (using|on) {find_index_of_partition(month)} ", plan), plan
    assert f"Seq Scan on {month} " not in plan

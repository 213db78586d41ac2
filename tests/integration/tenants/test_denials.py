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
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company
from tests.integration.tenants.records import NOON, completion
from tests.stack.services import Services

NUM_SERVED = 3000  # so many that Postgres prefers the index to reading all records
INDEX = "usage_record_denied"


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def build_record(company: Company, number: int, **fields: object) -> UsageRecord:
    """Return a record that is not stored yet. Each number has its own second before NOON."""
    return completion(company, at=NOON - timedelta(seconds=number + 1), **fields)


@pytest.fixture
def _many_records(company: Company, services: Services) -> None:
    denied_record = build_record(
        company, NUM_SERVED, finish_reason="error", error_code="path_excluded"
    )
    failed_record = build_record(
        company, NUM_SERVED + 1, finish_reason="error", error_code="engine_failed"
    )
    withheld_record = build_record(
        company, NUM_SERVED + 2, finish_reason="filtered", filter_reason="secret"
    )
    served_records = [build_record(company, number) for number in range(NUM_SERVED)]
    with tenant_scope(company.tenant_id):
        UsageRecord.objects.bulk_create(
            [*served_records, denied_record, failed_record, withheld_record], batch_size=1000
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


def find_index_of_partition(partition: str) -> str:
    """Return the name that Postgres gave to the partition's part of the index."""
    (name,) = query_values(
        "SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_index ON indexrelid = inhrelid"
        " WHERE inhparent = %s::regclass AND indrelid = %s::regclass",
        INDEX,
        partition,
    )
    return name


@pytest.mark.usefixtures("_many_records")
def test_denied_requests_are_found_by_their_partial_index(company: Company) -> None:
    with CaptureQueriesContext(connection) as queries:
        denials = count_denials(actor=company.administrator.actor, num_days=7, now=NOON)

    (denial_query,) = [query["sql"] for query in queries if "error_code" in query["sql"]]
    with tenant_scope(company.tenant_id):
        plan = "\n".join(query_values(f"EXPLAIN {denial_query}"))
    (partition,) = list_partitions(company)
    assert sorted(denial.reason for denial in denials) == ["path_excluded", "secret"]
    # Postgres writes "Index Scan using INDEX on TABLE", or "Bitmap Index Scan on INDEX".
    assert re.search(rf"Index Scan (using|on) {find_index_of_partition(partition)} ", plan), plan
    assert f"Seq Scan on {partition} " not in plan

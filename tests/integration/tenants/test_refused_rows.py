"""A usage record that Postgres refuses does not affect others in its entry of the Redis stream."""

from typing import Any

import pytest
from django.db import DataError

from caret.foundation.ids import TenantId
from tenants.usage.ingestion import operations
from tenants.usage.ingestion.operations import _insert_rows, ingest_all_entries
from tenants.usage.ingestion.redis_stream import UsageStream
from tests.fixtures.companies import Company
from tests.integration.tenants.test_ingest import (  # noqa: F401  # company and stream are fixtures
    company,
    completion,
    list_request_ids,
    send,
    stream,
)


def test_a_record_that_postgres_refuses_does_not_affect_others_in_its_entry(
    company: Company,  # noqa: F811
    stream: UsageStream,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse_one_row(tenant_id: TenantId, rows: list[Any]) -> None:
        if any(row.language == "refused" for row in rows):
            raise DataError
        _insert_rows(tenant_id, rows)

    monkeypatch.setattr(operations, "_insert_rows", refuse_one_row)
    valid_record, refused_record = completion(company), completion(company, language="refused")
    send(valid_record, refused_record)

    ingest_all_entries(stream)

    assert list_request_ids(company) == {valid_record.request_id}

"""Usage records, outcomes and typing reports as ingestion leaves them.

Ingestion inserts rows and marks their hours as dirty: these hours are rolled up again.
"""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import Outcome, TypingReport, UsageRecord
from tenants.usage.rollups.dirty_hours import list_dirty_hours, mark_hours_dirty
from tests.fixtures.companies import Company

NOON: Final = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)  # in the middle of an hour


def add_completion(company: Company, *, at: datetime = NOON, **fields: Any) -> uuid.UUID:
    row = completion(company, at=at, **fields)
    insert(company, row)
    return row.request_id


def completion(company: Company, *, at: datetime = NOON, **fields: Any) -> UsageRecord:
    """Return a record that is not inserted yet."""
    values = {
        "user_id": company.developer.user_id,
        "request_id": uuid7(now_ms=to_unix_ms(at)),
        "language": "python",
        "editor": "zed",
        "model": "qwen",
        "mode": "inline",
        "finish_reason": "stop",
        "error_code": "",
        "generated_tokens": 10,
        "num_chars": 40,
        "num_lines": 2,
        **fields,
    }
    return UsageRecord(
        tenant_id=company.tenant_id,
        occurred_at=at,
        key_id=uuid.uuid4(),
        protocol="stream",
        tier="fast",
        pool="fast",
        replica="r",
        prompt_tokens=100,
        cached_tokens=80,
        total_ms=9.0,
        **values,
    )


def add_outcome(company: Company, request_id: uuid.UUID, event: str, **fields: Any) -> None:
    values = {"occurred_at": NOON + timedelta(minutes=1), "chars": 40, "lines": 2, "after_ms": 0}
    insert(
        company,
        Outcome(
            tenant_id=company.tenant_id,
            outcome_id=uuid.uuid4(),
            request_id=request_id,
            event=event,
            **values | fields,
        ),
    )


def insert(company: Company, row: UsageRecord | Outcome | TypingReport) -> None:
    with tenant_scope(company.tenant_id):
        row.save(force_insert=True)
        mark_hours_dirty(company.tenant_id, list_dirty_hours([row]))

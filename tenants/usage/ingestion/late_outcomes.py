"""Outcomes that were told to a gateway which does not know their completion: which of them count.

Rules:
1. Of a completion of the same user, of a service's key: of the same key. What is somebody else's,
   or whose record has not come, counts nothing.
2. No more characters and lines than were suggested.
3. What was told before counts once, whichever way it came: a client that has lost its connection
   tells again what may not have arrived.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import connection

from caret.contracts.usage import MAX_PARTS, OutcomeEvent
from caret.foundation.ids import TenantId
from tenants.models import Outcome, UsageRecord
from tenants.usage.ingestion.bulk_insert import insert_new
from tenants.usage.ingestion.row_mapping import LateOutcome

# A gateway makes the id as it reads the clock. Of a big tenant a minute is a hundred thousand rows.
_AROUND: Final = timedelta(seconds=2)


def insert_late_outcomes(tenant_id: TenantId, told: Sequence[LateOutcome]) -> list[Outcome]:
    """Those that count, which are rows now. In the tenant's scope, behind the completions of the
    same batch. Three queries for each, and one."""
    if not told:
        return []
    _wait_for_others(tenant_id)
    return [row for each in told if (row := _insert_if_it_counts(each)) is not None]


def _wait_for_others(tenant_id: TenantId) -> None:
    """Until the transaction ends nobody else decides what was told before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"belated {tenant_id}"]
        )


def _insert_if_it_counts(told: LateOutcome) -> Outcome | None:
    completion = _completion_of(told)
    if completion is None or _was_told(told.outcome):
        return None
    told.outcome.chars = _at_most(completion.num_chars, told.chars)
    told.outcome.lines = _at_most(completion.num_lines, told.lines)
    insert_new(Outcome, [told.outcome])
    return told.outcome


def _completion_of(told: LateOutcome) -> UsageRecord | None:
    asker = {"user_id": told.outcome.user_id}
    if told.outcome.user_id is None:
        asker["key_id"] = told.key_id
    return (
        UsageRecord.objects.filter(
            occurred_at__gt=told.asked_at - _AROUND,
            occurred_at__lt=told.asked_at + _AROUND,
            request_id=told.outcome.request_id,
            **asker,
        )
        .order_by("occurred_at")
        .first()
    )


def _was_told(outcome: Outcome) -> bool:
    """Parts come again by the millisecond; of the others there is one."""
    same = Outcome.objects.filter(
        request_id=outcome.request_id, event=outcome.event, span_s=outcome.span_s
    )
    if outcome.event != OutcomeEvent.PARTIALLY_ACCEPTED:
        return same.exists()
    moments = list(same.values_list("after_ms", flat=True))
    return len(moments) >= MAX_PARTS or outcome.after_ms in moments


def _at_most(suggested: int | None, told: int | None) -> int:
    """None was suggested: it was recorded before that was counted."""
    return min(suggested or 0, told if told is not None else suggested or 0)

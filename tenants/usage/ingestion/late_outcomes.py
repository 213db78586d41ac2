"""Late outcomes: outcomes reported to a gateway or connection that did not serve the completion.

Rules:
1. The completion must belong to the same user, or, for a service key, to the same key. Outcomes of
   others' completions, or of completions whose record has not arrived, are ignored.
2. Characters and lines are limited to those of the suggestion.
3. An outcome that was reported several times counts once. A client that lost its connection repeats
   the reports that may not have arrived. Of partial acceptances, the first MAX_PARTS count.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import connection

from caret.contracts.usage import MAX_PARTS, OutcomeEvent
from caret.foundation.ids import TenantId
from tenants.models import Outcome, UsageRecord
from tenants.usage.ingestion.bulk_insert import insert_new_rows
from tenants.usage.ingestion.row_mapping import LateOutcome

# `requested_at` is the time in the request ID. The gateway creates this ID when it receives the
# request, so `occurred_at` is almost the same time. A wider range would be slow: a big tenant has
# 100,000 rows in a minute.
_MAX_DEVIATION: Final = timedelta(seconds=2)


def insert_late_outcomes(
    tenant_id: TenantId, late_outcomes: Sequence[LateOutcome]
) -> list[Outcome]:
    """Insert the outcomes that count, and return their rows.

    Must run in the tenant's scope, after the completions of the same batch were inserted. Makes one
    query, and up to three for each outcome; none without outcomes.
    """
    if not late_outcomes:
        return []
    _lock_late_outcomes(tenant_id)
    return [row for outcome in late_outcomes if (row := _insert_if_it_counts(outcome)) is not None]


def _lock_late_outcomes(tenant_id: TenantId) -> None:
    """Lock the tenant's late outcomes until the transaction ends.

    Without the lock, two transactions could insert the same outcome, because neither would see the
    other's row.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"late outcomes {tenant_id}"]
        )


def _insert_if_it_counts(late_outcome: LateOutcome) -> Outcome | None:
    completion = _find_completion(late_outcome)
    if completion is None or _is_repeated(late_outcome.outcome):
        return None
    late_outcome.outcome.chars = _limit_count(completion.num_chars, late_outcome.chars)
    late_outcome.outcome.lines = _limit_count(completion.num_lines, late_outcome.lines)
    insert_new_rows(Outcome, [late_outcome.outcome])
    return late_outcome.outcome


def _find_completion(late_outcome: LateOutcome) -> UsageRecord | None:
    requester = {"user_id": late_outcome.outcome.user_id}
    if late_outcome.outcome.user_id is None:
        requester["key_id"] = late_outcome.key_id
    return (
        UsageRecord.objects.filter(
            occurred_at__gt=late_outcome.requested_at - _MAX_DEVIATION,
            occurred_at__lt=late_outcome.requested_at + _MAX_DEVIATION,
            request_id=late_outcome.outcome.request_id,
            **requester,
        )
        .order_by("occurred_at")
        .first()
    )


def _is_repeated(outcome: Outcome) -> bool:
    """Return whether the outcome was reported before, or exceeds MAX_PARTS partial acceptances.

    Partial acceptances of a suggestion are distinguished by `after_ms`. Any other event counts
    once; a persisted outcome counts once for each `span_s`.
    """
    reported_outcomes = Outcome.objects.filter(
        request_id=outcome.request_id, event=outcome.event, span_s=outcome.span_s
    )
    if outcome.event != OutcomeEvent.PARTIALLY_ACCEPTED:
        return reported_outcomes.exists()
    reported_after_ms = list(reported_outcomes.values_list("after_ms", flat=True))
    return len(reported_after_ms) >= MAX_PARTS or outcome.after_ms in reported_after_ms


def _limit_count(suggested_count: int | None, reported_count: int | None) -> int:
    """Return the number of reported characters or lines, at most the number of suggested ones.

    `suggested_count` is None in old records and then counts as 0. `reported_count` None means the
    whole suggestion.
    """
    maximum = suggested_count or 0
    return maximum if reported_count is None else min(maximum, reported_count)

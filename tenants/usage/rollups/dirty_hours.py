"""Which hours are to be counted anew: marked in the transaction in which records come in."""

import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

from caret.foundation.clock import from_unix_ms
from caret.foundation.ids import TenantId
from tenants.models import DirtyHour, Outcome, TypingReport, UsageRecord

HOUR: Final = timedelta(hours=1)
# An id carries the moment it was made, within a moment of the request's own.
AROUND: Final = timedelta(seconds=60)
_VERSION_WITH_TIME: Final = 7


def lock_rollups(tenant_id: TenantId) -> None:
    """Until the transaction ends nobody counts the tenant's hours, nor takes away or renames what
    is counted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"roll-up {tenant_id}"]
        )


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def dirty_hours_for(rows: Iterable[UsageRecord | Outcome | TypingReport]) -> set[datetime]:
    """An outcome's hours are those in which its completion may have been."""
    hours: set[datetime] = set()
    for row in rows:
        if isinstance(row, Outcome):
            hours.update(_hours_of_request(row.request_id))
        else:
            hours.add(hour_of(row.occurred_at))
    return hours


def mark_dirty(tenant_id: TenantId, hours: Iterable[datetime]) -> None:
    """Inside the tenant's scope and the transaction that changes the records of `hours`."""
    # In order, though marks never collide: rows of one statement are easier to find together.
    marks = [DirtyHour(tenant_id=tenant_id, hour=hour) for hour in sorted(hours)]
    DirtyHour.objects.bulk_create(marks)


def _hours_of_request(request_id: uuid.UUID) -> Iterator[datetime]:
    if request_id.version != _VERSION_WITH_TIME:
        return  # none of ours: it has no completion
    try:
        made_at = from_unix_ms(request_id.int >> 80)
        yield hour_of(made_at - AROUND)
        yield hour_of(made_at + AROUND)
    except OverflowError:
        return

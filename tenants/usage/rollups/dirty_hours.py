"""Marks of hours that must be rolled up again, written when their records change."""

import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

from caret.foundation.clock import from_unix_ms
from caret.foundation.ids import TenantId
from tenants.models import DirtyHour, Outcome, TypingReport, UsageRecord

HOUR: Final = timedelta(hours=1)
# The greatest difference that is expected between a request's time and the time in its ID.
MAX_ID_DEVIATION: Final = timedelta(seconds=60)
_VERSION_WITH_TIME: Final = 7  # of UUIDs that contain their time


def lock_rollups(tenant_id: TenantId) -> None:
    """Lock the tenant's rollups until the transaction ends.

    Until then, no other transaction counts hours, or deletes or pseudonymizes their records.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"roll-up {tenant_id}"]
        )


def get_hour(moment: datetime) -> datetime:
    """Return the start of the hour that contains `moment`."""
    return moment.replace(minute=0, second=0, microsecond=0)


def list_dirty_hours(rows: Iterable[UsageRecord | Outcome | TypingReport]) -> set[datetime]:
    """Return the hours of the rows; for an outcome, the hours in which its completion may be."""
    hours: set[datetime] = set()
    for row in rows:
        if isinstance(row, Outcome):
            hours.update(_list_hours_of_request(row.request_id))
        else:
            hours.add(get_hour(row.occurred_at))
    return hours


def mark_hours_dirty(tenant_id: TenantId, hours: Iterable[datetime]) -> None:
    """Mark hours to be counted again.

    Must run inside the tenant's scope, in the transaction that changes the hours' records.
    """
    # Sorted, so that neighbouring marks are stored together. Each mark has a random ID, so
    # concurrent transactions can mark the same hour.
    marks = [DirtyHour(tenant_id=tenant_id, hour=hour) for hour in sorted(hours)]
    DirtyHour.objects.bulk_create(marks)


def _list_hours_of_request(request_id: uuid.UUID) -> Iterator[datetime]:
    if request_id.version != _VERSION_WITH_TIME:
        return  # no gateway created this ID, so it belongs to no completion
    try:
        made_at = from_unix_ms(request_id.int >> 80)  # the first 48 of 128 bits are the time
        yield get_hour(made_at - MAX_ID_DEVIATION)
        yield get_hour(made_at + MAX_ID_DEVIATION)
    except OverflowError:
        return

"""Pseudonymization: replaces a user's ID in rows that are kept, so that totals stay correct.

The pseudonym is derived from the user's ID with a secret of the erasure, so that an interrupted
erasure continues with the same pseudonym. The secret is deleted at the end. After that, nothing
connects the pseudonym with the user. The caller processes each month in its own transaction.
"""

import hashlib
import hmac
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from caret.foundation.ids import TenantId
from tenants.models import MonthSpend, Outcome, TypingReport, UsageDay, UsageHour, UsageRecord
from tenants.privacy.retention.tables import HoldPeriod, RetentionTable
from tenants.usage.rollups.dirty_hours import lock_rollups

TABLES: Final = (
    RetentionTable(UsageRecord, "occurred_at", "user_id"),
    RetentionTable(Outcome, "occurred_at", "user_id"),
    RetentionTable(TypingReport, "occurred_at", "user_id"),
    RetentionTable(UsageHour, "starts_at", "user_id"),
    RetentionTable(UsageDay, "starts_at", "user_id"),
)
_ID_BYTES: Final = 16
# Gateways' clocks may be fast, so times may lie in the future. One day is more than enough.
MAX_CLOCK_LEAD: Final = timedelta(days=1)
TimeRange = tuple[datetime, datetime]  # from the first time until before the second


def compute_pseudonym(secret: bytes, user_id: uuid.UUID) -> uuid.UUID:
    """Return the user's pseudonym. `secret` is that of the erasure."""
    digest = hmac.digest(secret, user_id.bytes, hashlib.sha256)
    return uuid.UUID(bytes=digest[:_ID_BYTES], version=4)


def list_months(tenant_id: TenantId, *, now: datetime) -> list[TimeRange]:
    """Return the months from the first row in TABLES until MAX_CLOCK_LEAD after `now`.

    The oldest month comes first; without rows, the list is empty.

    Must run inside the tenant's scope. One index query for each table.
    """
    first_times: list[datetime] = []
    for table in TABLES:
        rows = table.select_rows(tenant_id).order_by(table.time_field)
        first = rows.values_list(table.time_field, flat=True).first()
        if first is not None:
            first_times.append(first)
    return list(_iterate_months(min(first_times), now + MAX_CLOCK_LEAD)) if first_times else []


def pseudonymize_time_range(
    tenant_id: TenantId,
    time_range: TimeRange,
    *,
    user_id: uuid.UUID,
    pseudonym: uuid.UUID,
    holds: tuple[HoldPeriod, ...],
) -> dict[str, int]:
    """Replace the user's ID in rows of the time range that are not on hold.

    Return the numbers of rows by table.

    Must run inside the tenant's scope, with the tenant's row locked, so that no hold is placed
    meanwhile.
    """
    # Without this lock, a rollup that has read the old ID could write it after this update.
    lock_rollups(tenant_id)
    start, end = time_range
    counts = {}
    for table in TABLES:
        time_filter = {f"{table.time_field}__gte": start, f"{table.time_field}__lt": end}
        rows = table.select_rows(tenant_id).filter(**time_filter, user_id=user_id)
        free_rows = table.exclude_held(rows, holds)
        counts[table.model._meta.db_table] = free_rows.update(user_id=pseudonym)
    return counts


def pseudonymize_spend(tenant_id: TenantId, user_id: uuid.UUID) -> int:
    """Replace the user's ID in monthly spending by a random ID for each month.

    Only the sums are needed, so the months need no common pseudonym. Return the number of months.
    Must run inside the tenant's scope. Must not be called while any hold applies to the user.
    """
    rows = MonthSpend.objects.filter(tenant_id=tenant_id, holder=str(user_id))
    months = list(rows.values_list("month", flat=True))
    for month in months:
        rows.filter(month=month).update(holder=str(uuid.uuid4()))
    return len(months)


def count_remaining(tenant_id: TenantId, user_id: uuid.UUID, holds: tuple[HoldPeriod, ...]) -> int:
    """Count the rows that still contain the ID and are not on hold.

    Must run inside the tenant's scope.
    """
    # While any hold applies to the user, for whatever period, monthly spending keeps the ID: the
    # worker then does not call `pseudonymize_spend`.
    spend_rows = MonthSpend.objects.filter(tenant_id=tenant_id, holder=str(user_id))
    num_left = 0 if holds else spend_rows.count()
    for table in TABLES:
        num_left += table.exclude_held(
            table.select_rows(tenant_id).filter(user_id=user_id), holds
        ).count()
    return num_left


def _iterate_months(first: datetime, last: datetime) -> Iterator[TimeRange]:
    start = first.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while start <= last:
        end = (start + timedelta(days=32)).replace(day=1)  # 32 days later is the next month
        yield start, end
        start = end

"""Operations that roll up hours and days with new records.

Each day is counted in one transaction. If the worker is killed, nothing of this day has changed. A
repeated run gives the same result.

    for each marked hour (delete its marks > count it) > count the day from its hours > COMMIT

The marks of an hour are deleted before the hour is counted. A statement sees only data that was
committed before the statement began. A record that is committed later has a new mark, which stays
for the next run.

Retention purges records, but not rollups. An hour keeps its counts after some of its records were
purged.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from django.db import connection
from django.db.models import Max
from django.db.models.functions import Greatest

from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.validation.time_bounds import validate_datetime
from tenants.base.worker.failure_log import FailureLog
from tenants.models import (
    DirtyHour,
    LatencyDay,
    LatencyHour,
    PurgeRun,
    RollupState,
    UsageDay,
    UsageHour,
)
from tenants.models.rollup import SERVICE_KEYS_USER_ID
from tenants.policy.data_classes import DataClass
from tenants.security.authorization.directory import list_tenants
from tenants.usage.rollups import sql
from tenants.usage.rollups.dirty_hours import (
    HOUR,
    MAX_ID_DEVIATION,
    get_hour,
    lock_rollups,
    mark_hours_dirty,
)

DAY: Final = timedelta(days=1)
# The longest time that is expected from a request to the arrival of its record in Redis. The record
# is written when the request has ended, after at most 30 s.
MAX_RECORD_DELAY: Final = timedelta(minutes=1)
# Days counted per tenant in one run, which limits a run's time. The next run continues.
MAX_DAYS: Final = 400
logger = structlog.get_logger(__name__)


def roll_up_all_tenants(*, arrived_until: datetime) -> int:
    """Roll up all tenants, and return the number of days counted for all of them together.

    `arrived_until`: all records that had reached Redis by this time are in the tables.
    """
    num_days = 0
    for tenant_id in list_tenants().values():
        with FailureLog("metrics.not_rolled_up", tenant_id=tenant_id):
            num_days += roll_up_tenant(tenant_id=tenant_id, arrived_until=arrived_until)
    if num_days:
        logger.info("metrics.rolled_up", days=num_days)
    return num_days


def roll_up_tenant(*, tenant_id: TenantId, arrived_until: datetime) -> int:
    """Count the marked hours of up to MAX_DAYS days, and return the number of days counted.

    Concurrent runs are harmless: the second waits for the first, day by day.
    """
    by_day = _read_dirty_hours(tenant_id)
    days = sorted(by_day)[:MAX_DAYS]
    for day in days:
        _count_day(tenant_id, day, by_day[day])
    if len(days) == len(by_day):
        _set_complete(tenant_id, arrived_until - MAX_RECORD_DELAY)
    return len(days)


def mark_period_dirty(*, tenant_id: TenantId, start: datetime, end: datetime) -> None:
    """Mark the hours of a half-open period to be counted again.

    Hours without records, and counted hours that begin before the cutoff of a purge, keep their
    counts.

    Raises InvalidValue.
    """
    validate_datetime("start", start)
    validate_datetime("end", end)
    first, hours = get_hour(start), []
    while first < end:
        hours.append(first)
        first += HOUR
    with tenant_scope(tenant_id):
        mark_hours_dirty(tenant_id, hours)


def find_complete_until(tenant_id: TenantId) -> datetime | None:
    """Return the time until which rollups are complete; None: nothing was counted yet.

    Must run inside the tenant's scope.
    """
    states = RollupState.objects.filter(tenant_id=tenant_id)
    return states.values_list("complete_until", flat=True).first()


def _read_dirty_hours(tenant_id: TenantId) -> dict[datetime, list[datetime]]:
    with tenant_scope(tenant_id):
        hours = list(
            DirtyHour.objects.filter(tenant_id=tenant_id).values_list("hour", flat=True).distinct()
        )
    by_day: defaultdict[datetime, list[datetime]] = defaultdict(list)
    for hour in hours:
        by_day[_get_day(hour)].append(hour.astimezone(UTC))
    return by_day


def _count_day(tenant_id: TenantId, day: datetime, hours: Iterable[datetime]) -> None:
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        lock_rollups(tenant_id)
        purged_until = _find_purged_until(tenant_id)
        for hour in hours:
            DirtyHour.objects.filter(tenant_id=tenant_id, hour=hour).delete()
            # An hour that was counted before some of its records were purged keeps its counts.
            if purged_until is None or hour >= purged_until or not _is_counted(tenant_id, hour):
                _count_hour(cursor, tenant_id, hour)
        parameters: dict[str, Any] = {"tenant": tenant_id, "start": day, "end": day + DAY}
        UsageDay.objects.filter(tenant_id=tenant_id, starts_at=day).delete()
        cursor.execute(sql.COUNT_DAY, parameters)
        LatencyDay.objects.filter(tenant_id=tenant_id, starts_at=day).delete()
        cursor.execute(sql.COUNT_LATENCY_DAY, parameters)


def _find_purged_until(tenant_id: TenantId) -> datetime | None:
    """Return the latest cutoff of a purge that deleted records; None: no records were purged."""
    runs = PurgeRun.objects.filter(tenant_id=tenant_id, data_class=DataClass.USAGE, deleted__gt=0)
    last: datetime | None = runs.aggregate(last=Max("cutoff"))["last"]
    return last


def _is_counted(tenant_id: TenantId, hour: datetime) -> bool:
    return UsageHour.objects.filter(tenant_id=tenant_id, starts_at=hour).exists()


def _count_hour(cursor: Any, tenant_id: TenantId, hour: datetime) -> None:
    parameters = {
        "tenant": tenant_id,
        "start": hour,
        "end": hour + HOUR,
        "first_id": _build_request_id_at(hour - MAX_ID_DEVIATION, filler="0"),
        "last_id": _build_request_id_at(hour + HOUR + MAX_ID_DEVIATION, filler="f"),
        "services": SERVICE_KEYS_USER_ID,
    }
    cursor.execute(f"SELECT {sql.HAS_RECORDS}", parameters)
    (has_records,) = cursor.fetchone()
    if not has_records:
        return
    UsageHour.objects.filter(tenant_id=tenant_id, starts_at=hour).delete()
    cursor.execute(sql.COUNT_COMPLETIONS, parameters)
    cursor.execute(sql.COUNT_TYPED, parameters)
    LatencyHour.objects.filter(tenant_id=tenant_id, starts_at=hour).delete()
    cursor.execute(sql.COUNT_LATENCY, parameters)


def _set_complete(tenant_id: TenantId, until: datetime) -> None:
    """Advance the time until which rollups are complete; never move it back."""
    with tenant_scope(tenant_id):
        states = RollupState.objects.filter(tenant_id=tenant_id)
        if not states.update(complete_until=Greatest("complete_until", until)):
            RollupState.objects.bulk_create(
                [RollupState(tenant_id=tenant_id, complete_until=until)], ignore_conflicts=True
            )


def _get_day(hour: datetime) -> datetime:
    return hour.astimezone(UTC).replace(hour=0)


def _build_request_id_at(moment: datetime, *, filler: str) -> str:
    """Return the lowest (filler "0") or highest (filler "f") bound of request IDs at `moment`.

    A request ID is a UUID of version 7: 12 hex digits of time, then 20 others.
    """
    return f"{max(to_unix_ms(moment), 0) & 0xFFFFFFFFFFFF:012x}{filler * 20}"

"""Usage of each pool by day over all tenants, for the cost figures.

A task counts tenant by tenant, each in its own scope, and stores the sums in Redis. Pages never
read the tenants' tables. Days whose records were purged keep their counts. If Redis loses its data,
the counts are restored for the days that still have records, but replica seconds are lost.

    caret:pools:days              hash    day -> encoded counts by pool
    caret:pools:replica-seconds   hash    day|pool -> replica seconds
    caret:pools:replica-seconds-at string Unix time in ms until which replica seconds were added
    caret:pools:last-full-recount string  "1"; expires a day after all days were counted

Replica seconds are the seconds in which replicas were not down, added up over the pool's replicas.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, cast

import msgspec
import redis
import structlog
from django.db import connection

from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.fleet.pools.scraping.installation_status import InstallationStatus
from tenants.security.authorization.directory import list_tenants
from tenants.usage.rollups.sql import COUNT_POOLS

DAYS: Final = "caret:pools:days"
REPLICA_SECONDS: Final = "caret:pools:replica-seconds"
REPLICA_SECONDS_AT: Final = "caret:pools:replica-seconds-at"
ALL_COUNTED: Final = "caret:pools:last-full-recount"
MAX_DAYS: Final = 90  # days that are counted, today included
_RECENT_DAYS: Final = 3  # counted in each run; older days once a day
# The time that a query covers. A query of three months would need too much memory.
_QUERIED_TIME: Final = timedelta(days=7)
# The time in a request's ID differs from the time of the request by less than this.
_MAX_ID_DEVIATION: Final = timedelta(seconds=60)
_SECONDS_PER_DAY: Final = 86_400
_INTERVAL_S: Final = 60  # of the task that records replica seconds
_MAX_RECORDED_S: Final = 90  # a busy worker may start the task half an interval late
# Other values in Redis were not written by this module.
_DIGITS: Final = re.compile(rb"[0-9]{1,15}")
logger = structlog.get_logger(__name__)


class PoolCounts(msgspec.Struct, frozen=True, array_like=True):
    """The usage of a pool on a day or on several days."""

    requests: int = 0  # of any finish reason
    prompt_tokens: int = 0
    generated_tokens: int = 0
    accepted_tokens: int = 0  # the generated tokens times the share of accepted characters

    def plus(self, other: "PoolCounts") -> "PoolCounts":
        return PoolCounts(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.generated_tokens + other.generated_tokens,
            self.accepted_tokens + other.accepted_tokens,
        )


ByPool = dict[str, PoolCounts]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ByPool).decode


def count_recent_pool_usage(store: redis.Redis, *, now: datetime) -> None:
    """Count the latest days, and once a day all of them. Raises redis.RedisError."""
    has_counted_all = bool(store.exists(ALL_COUNTED))
    count_pool_usage(store, num_days=_RECENT_DAYS if has_counted_all else MAX_DAYS, now=now)
    if not has_counted_all:
        store.set(ALL_COUNTED, 1, ex=_SECONDS_PER_DAY)


def count_pool_usage(store: redis.Redis, *, num_days: int, now: datetime) -> int:
    """Count the last `num_days` days, today included, and return how many of them had requests.

    Raises redis.RedisError.
    """
    today = now.astimezone(UTC).date()
    counts_by_day: dict[date, ByPool] = {}
    for tenant_id in list_tenants().values():
        _add_tenant_usage(counts_by_day, tenant_id, today - timedelta(days=num_days - 1), today)
    stored_counts = read_pool_usage(store, num_days=num_days, now=now)
    newer = {
        day.isoformat(): _encode(counts)
        for day, counts in counts_by_day.items()
        # If a day has fewer requests than before, records were purged, so the old counts stay.
        if _sum_requests(counts) >= _sum_requests(stored_counts.get(day, {}))
    }
    if newer:
        store.hset(DAYS, mapping=cast(Any, newer))
    _delete_before(store, today - timedelta(days=MAX_DAYS))
    return len(counts_by_day)


def read_pool_usage(store: redis.Redis, *, num_days: int, now: datetime) -> dict[date, ByPool]:
    """Read the counts of the last `num_days` days, without days that have no counts.

    Raises redis.RedisError.
    """
    days = _list_days(num_days, now)
    encoded = cast(Any, store.hmget(DAYS, [day.isoformat() for day in days]))
    counts_by_day = {
        day: _decode_counts(data) for day, data in zip(days, encoded, strict=True) if data
    }
    return {day: counts for day, counts in counts_by_day.items() if counts is not None}


def record_replica_seconds(
    store: redis.Redis, installation: InstallationStatus, *, now: datetime
) -> None:
    """Add the seconds since the last call for each replica that is not down. Called each minute.

    After a gap of more than 90 s, only a minute is added, because nobody knows whether the replicas
    were up. A repeated call adds almost nothing. The seconds are divided among the pools that the
    replica belongs to. Raises redis.RedisError.
    """
    duration_s = _advance_recorded_until(store, now)
    for pool, seconds in _compute_replica_seconds(installation, duration_s=duration_s).items():
        store.hincrby(REPLICA_SECONDS, f"{now.astimezone(UTC).date().isoformat()}|{pool}", seconds)


def _advance_recorded_until(store: redis.Redis, now: datetime) -> int:
    """Return the seconds since the last call, from 0 to 90; 60 if it is the first or a gap ends."""
    previous_ms = cast(Any, store.set(REPLICA_SECONDS_AT, to_unix_ms(now), get=True))
    if previous_ms is None or not _DIGITS.fullmatch(previous_ms):
        return _INTERVAL_S
    elapsed_s = max(round((to_unix_ms(now) - int(previous_ms)) / 1000), 0)
    return elapsed_s if elapsed_s <= _MAX_RECORDED_S else _INTERVAL_S


def read_replica_seconds(
    store: redis.Redis, *, num_days: int, now: datetime
) -> dict[date, dict[str, int]]:
    """Read the measured replica seconds of the last `num_days` days, by day and pool.

    Raises redis.RedisError.
    """
    days = {day.isoformat(): day for day in _list_days(num_days, now)}
    seconds_by_day: dict[date, dict[str, int]] = {}
    for field, value in cast(Any, store.hgetall(REPLICA_SECONDS)).items():
        day, _, pool = field.decode("utf-8", "replace").partition("|")
        if day in days and _DIGITS.fullmatch(value):
            seconds_by_day.setdefault(days[day], {})[pool] = int(value)
    return seconds_by_day


def compute_replica_seconds_a_day(installation: InstallationStatus) -> dict[str, int]:
    """Return the replica seconds of a full day by pool, with the replicas that are not down now."""
    return _compute_replica_seconds(installation, duration_s=_SECONDS_PER_DAY)


def _compute_replica_seconds(
    installation: InstallationStatus, *, duration_s: int
) -> dict[str, int]:
    num_pools_by_replica: dict[str, int] = {}
    for pool in installation.pools:
        for replica in pool.replicas:
            num_pools = num_pools_by_replica.get(replica.name, 0)
            num_pools_by_replica[replica.name] = num_pools + 1
    return {
        pool.name: sum(
            round(duration_s / num_pools_by_replica[replica.name])
            for replica in pool.replicas
            if replica.is_up is not False
        )
        for pool in installation.pools
    }


def _add_tenant_usage(
    counts_by_day: dict[date, ByPool], tenant_id: TenantId, first: date, last: date
) -> None:
    """Add a tenant's usage of the days from `first` to `last` to `counts_by_day`."""
    start, end = _to_midnight(first), _to_midnight(last + timedelta(days=1))
    while start < end:
        until = min(start + _QUERIED_TIME, end)
        for day, pool, *values in _count_requests(tenant_id, start, until):
            counts_by_pool = counts_by_day.setdefault(day, {})
            counts_by_pool[pool] = counts_by_pool.get(pool, PoolCounts()).plus(
                PoolCounts(*map(int, values))
            )
        start = until


def _count_requests(
    tenant_id: TenantId, start: datetime, end: datetime
) -> Iterable[tuple[Any, ...]]:
    """Return a day, a pool, and the values of its PoolCounts in each row."""
    parameters: dict[str, Any] = {
        "tenant": tenant_id,
        "start": start,
        "end": end,
        "first_id": _build_request_id_at(start - _MAX_ID_DEVIATION, filler="0"),
        "last_id": _build_request_id_at(end + _MAX_ID_DEVIATION, filler="f"),
    }
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(COUNT_POOLS, parameters)
        return cast(list[tuple[Any, ...]], cursor.fetchall())


def _build_request_id_at(moment: datetime, *, filler: str) -> str:
    """Return the lowest (filler "0") or the highest ID (filler "f") of a request at `moment`.

    A request's ID is a UUIDv7. The first 12 of its 32 hexadecimal digits are the time.
    """
    return f"{max(to_unix_ms(moment), 0) & 0xFFFFFFFFFFFF:012x}{filler * 20}"


def _delete_before(store: redis.Redis, before: date) -> None:
    for hash_name in (DAYS, REPLICA_SECONDS):
        fields = cast(Any, store.hkeys(hash_name))
        # Each field begins with its day, in 10 characters such as 2026-11-01.
        if old := [field for field in fields if field[:10] < before.isoformat().encode()]:
            store.hdel(hash_name, *old)


def _decode_counts(data: bytes) -> ByPool | None:
    """Decode counts; None: another version or something else has written them."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _sum_requests(counts_by_pool: Mapping[str, PoolCounts]) -> int:
    return sum(counts.requests for counts in counts_by_pool.values())


def _list_days(num_days: int, now: datetime) -> list[date]:
    today = now.astimezone(UTC).date()
    return [today - timedelta(days=number) for number in range(num_days)]


def _to_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)

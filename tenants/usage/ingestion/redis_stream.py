"""The usage stream in Redis, read as a consumer group.

An entry is pending from its read to its acknowledgement. Another consumer claims the pending
entries of a dead one. Acknowledged entries are deleted, so the stream contains only the backlog.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

import redis

from caret.contracts.usage import USAGE_FIELD, USAGE_GROUP, USAGE_STREAM
from caret.foundation.clock import from_unix_ms
from caret.foundation.ids import TenantId

REJECTED_STREAM: Final = "caret:usage:rejected"
MAX_REJECTED: Final = 1_000  # entries; the oldest are dropped first
_MAX_REJECTED_BYTES: Final = 64 * 1024  # of one entry
# The most entries in one read. If each entry contains one record, as most do, this many entries
# have half a megabyte and take about 100 ms.
MAX_ENTRIES_PER_READ: Final = 512
# Longer than the insert of one read's entries takes. An entry that is pending for this long
# probably belongs to a dead consumer. If the consumer is only slow, both consumers insert the
# entry's records, and the second insert skips the existing rows.
CLAIM_AFTER_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class StreamEntry:
    entry_id: bytes
    data: bytes | None  # None: the entry has no data field


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    reason: str  # names the field that is wrong, if known, but never its content
    data: bytes  # the encoded record or entry; empty if missing, or if it must not be stored


class UsageStream:
    def __init__(
        self, connection: redis.Redis, *, consumer: str, claim_after_ms: int = CLAIM_AFTER_MS
    ) -> None:
        self._connection = connection
        self._consumer = consumer
        self._claim_after_ms = claim_after_ms

    def create(self) -> None:
        """Create the group and the stream if they do not exist."""
        try:
            self._connection.xgroup_create(USAGE_STREAM, USAGE_GROUP, id="0", mkstream=True)
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    def claim_abandoned(self) -> list[StreamEntry]:
        """Claim up to MAX_ENTRIES_PER_READ entries that a dead consumer left pending."""
        response: Any = self._connection.xautoclaim(
            USAGE_STREAM,
            USAGE_GROUP,
            self._consumer,
            min_idle_time=self._claim_after_ms,
            count=MAX_ENTRIES_PER_READ,
        )
        _next_start, rows, *_deleted_ids = response
        return _to_entries(rows)

    def read_new(self) -> list[StreamEntry]:
        """Read up to MAX_ENTRIES_PER_READ new entries, without waiting."""
        response: Any = self._connection.xreadgroup(
            USAGE_GROUP, self._consumer, {USAGE_STREAM: ">"}, count=MAX_ENTRIES_PER_READ
        )
        return [entry for _, rows in response for entry in _to_entries(rows)]

    def find_arrived_until(self, *, now: datetime) -> datetime:
        """Return the time until which all records that reached Redis are in the tables.

        This is the arrival time of the oldest entry in the stream, or `now` without entries.
        """
        response: Any = self._connection.xrange(USAGE_STREAM, count=1)
        if not response:
            return now
        ((entry_id, _fields),) = response
        # An entry's ID begins with its time of arrival, for example b"1763762940000-0".
        arrived_at_ms = int(entry_id.partition(b"-")[0])
        return min(now, from_unix_ms(arrived_at_ms))  # Redis's clock may be ahead

    def acknowledge(
        self, entries: Sequence[StreamEntry], rejections: Sequence[RejectedRecord]
    ) -> None:
        """Store rejected records, then acknowledge and delete the entries, in one transaction."""
        ids = [entry.entry_id for entry in entries]
        pipeline = self._connection.pipeline(transaction=True)
        for record in rejections:
            fields = {"reason": record.reason, "data": record.data[:_MAX_REJECTED_BYTES]}
            pipeline.xadd(
                REJECTED_STREAM, cast(Any, fields), maxlen=MAX_REJECTED, approximate=False
            )
        pipeline.xack(USAGE_STREAM, USAGE_GROUP, *ids)
        pipeline.xdel(USAGE_STREAM, *ids)
        pipeline.execute()


def delete_rejected_records(connection: redis.Redis, tenant_id: TenantId) -> None:
    """Rewrite the stream of rejected records without those of a tenant.

    XDEL would only mark an entry as deleted. Redis keeps the entry's bytes, in memory and on disk,
    until all entries of the same stream node are deleted. Raises redis.RedisError.
    """
    tenant_bytes = tenant_id.encode()

    def rewrite(pipeline: Any) -> None:  # repeated if an entry is added meanwhile
        rejected_entries = pipeline.xrange(REJECTED_STREAM)
        remaining = [
            (entry_id, fields)
            for entry_id, fields in rejected_entries
            if not any(tenant_bytes in value for value in fields.values())
        ]
        pipeline.multi()
        if len(remaining) == len(rejected_entries):
            return
        pipeline.delete(REJECTED_STREAM)
        for entry_id, fields in remaining:
            pipeline.xadd(REJECTED_STREAM, fields, id=entry_id)

    connection.transaction(rewrite, REJECTED_STREAM)


def _to_entries(rows: Any) -> list[StreamEntry]:
    field = USAGE_FIELD.encode()
    return [StreamEntry(entry_id, (fields or {}).get(field)) for entry_id, fields in rows]

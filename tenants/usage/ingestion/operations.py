"""Operations that insert usage records from the stream, each exactly once.

    read > decode > insert, tenant by tenant > COMMIT > acknowledge

After a crash before the acknowledgement, another worker gets the same entries and skips the rows
that already exist: a row's primary key contains the record's time and ID. A record that cannot
become a row is moved to the stream of rejected records, with the reason.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
from django.db import DataError, IntegrityError

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import Erasure, Outcome, Tenant, TypingReport, UsageRecord
from tenants.usage.ingestion.batch_numbers import allocate_batch
from tenants.usage.ingestion.bulk_insert import insert_new_rows
from tenants.usage.ingestion.key_last_used import record_key_use
from tenants.usage.ingestion.late_outcomes import insert_late_outcomes
from tenants.usage.ingestion.redis_stream import RejectedRecord, StreamEntry, UsageStream
from tenants.usage.ingestion.row_mapping import (
    LateOutcome,
    Row,
    UnstorableRecord,
    decode_entry,
    decode_row,
)
from tenants.usage.rollups.dirty_hours import list_dirty_hours, mark_hours_dirty

# A run ends after this many reads of the stream, so that the task ends. The next run is scheduled
# within a second.
MAX_READS: Final = 50

logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class UsageIngestion:
    """The result of one run."""

    # Records inserted now or by an earlier attempt, and late outcomes that were ignored.
    records: int = 0
    rejected: int = 0  # records that cannot be stored


@dataclass(slots=True)
class _DecodedRead:
    """The decoded records of all entries that one read of the stream returned."""

    # The rows by tenant, each with the encoded record.
    rows: dict[TenantId, list[tuple[Row | LateOutcome, bytes]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    rejected: list[RejectedRecord] = field(default_factory=list)


def ingest_all_entries(stream: UsageStream, *, max_reads: int = MAX_READS) -> UsageIngestion:
    """Ingest until the stream is empty, or for `max_reads` reads. Concurrent runs are harmless.

    Raises redis.RedisError or django.db.OperationalError; then nothing is lost.
    """
    stream.create()
    ingestion = UsageIngestion()
    for _ in range(max_reads):
        entries = stream.claim_abandoned() or stream.read_new()
        if not entries:
            break
        _ingest_entries(stream, entries, ingestion)
    if ingestion.records or ingestion.rejected:
        logger.info("usage.ingested", records=ingestion.records, rejected=ingestion.rejected)
    return ingestion


def _ingest_entries(
    stream: UsageStream, entries: Sequence[StreamEntry], ingestion: UsageIngestion
) -> None:
    decoded = _decode_entries(entries)
    _reject_unknown_tenants(decoded)
    for tenant_id, rows in decoded.rows.items():
        ingestion.records += _insert_or_reject(tenant_id, rows, decoded.rejected)
    # All rows are committed here. After a crash now, another worker reads the entries again and
    # skips the existing rows. If two workers process the same entries at once, rejected records are
    # stored twice.
    stream.acknowledge(entries, decoded.rejected)
    ingestion.rejected += len(decoded.rejected)
    for reason, count in Counter(record.reason for record in decoded.rejected).items():
        logger.warning("usage.rejected", reason=reason, records=count)


def _decode_entries(entries: Iterable[StreamEntry]) -> _DecodedRead:
    decoded = _DecodedRead()
    for entry in entries:
        try:
            records = decode_entry(entry.data or b"")
        except UnstorableRecord as error:
            decoded.rejected.append(RejectedRecord(str(error), entry.data or b""))
            continue
        for data in records:
            try:
                row = decode_row(data)
            except UnstorableRecord as error:
                decoded.rejected.append(RejectedRecord(str(error), data))
            else:
                decoded.rows[TenantId(str(row.tenant_id))].append((row, data))
    return decoded


def _reject_unknown_tenants(decoded: _DecodedRead) -> None:
    """Move the records of tenants that do not exist to the rejected records."""
    tenants = Tenant.objects.filter(id__in=list(decoded.rows))
    existing_ids = {TenantId(str(tenant_id)) for tenant_id in tenants.values_list("id", flat=True)}
    for tenant_id in decoded.rows.keys() - existing_ids:
        for _, data in decoded.rows.pop(tenant_id):
            decoded.rejected.append(RejectedRecord("tenant_id: unknown", data))


def _insert_or_reject(
    tenant_id: TenantId,
    rows: list[tuple[Row | LateOutcome, bytes]],
    rejections: list[RejectedRecord],
) -> int:
    """Insert the tenant's rows, and return how many. Adds rejected records to `rejections`."""
    try:
        with tenant_scope(tenant_id):
            if _is_shredded(tenant_id):
                # The rejected records are stored without their data, because the data contains user
                # IDs, and nothing would purge it.
                rejections += [RejectedRecord("tenant_id: shredded", b"")] * len(rows)
                return 0
            _insert_rows(tenant_id, [row for row, _ in rows])
        return len(rows)
    except (DataError, IntegrityError):
        return _insert_singly(tenant_id, rows, rejections)


def _is_shredded(tenant_id: TenantId) -> bool:
    """Return whether the tenant's data was erased or is being erased.

    A gateway that was disconnected may later deliver records of such a tenant.
    """
    return Erasure.objects.filter(tenant_id=tenant_id, user_id=None).exists()


def _insert_singly(
    tenant_id: TenantId,
    rows: list[tuple[Row | LateOutcome, bytes]],
    rejections: list[RejectedRecord],
) -> int:
    """Insert rows one by one, and return how many. A rejected row does not affect the others."""
    num_inserted = 0
    for row, data in rows:
        try:
            with tenant_scope(tenant_id):
                _insert_rows(tenant_id, [row])
            num_inserted += 1
        except (DataError, IntegrityError) as error:
            rejections.append(RejectedRecord(f"row: {type(error).__name__}", data))
    return num_inserted


def _insert_rows(tenant_id: TenantId, decoded_rows: list[Row | LateOutcome]) -> None:
    rows = [row for row in decoded_rows if not isinstance(row, LateOutcome)]
    usage = [row for row in rows if isinstance(row, UsageRecord)]
    if usage:
        batch_number = allocate_batch(tenant_id)
        for row in usage:
            row.batch = batch_number
    insert_new_rows(UsageRecord, usage)
    insert_new_rows(Outcome, [row for row in rows if isinstance(row, Outcome)])
    insert_new_rows(TypingReport, [row for row in rows if isinstance(row, TypingReport)])
    # After the completions of the same batch, because late outcomes may belong to them.
    rows += insert_late_outcomes(
        tenant_id, [row for row in decoded_rows if isinstance(row, LateOutcome)]
    )
    mark_hours_dirty(tenant_id, list_dirty_hours(rows))
    record_key_use({(row.key_id, row.occurred_at) for row in usage})

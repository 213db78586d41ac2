"""Exports of usage: each request, and the counts of each day."""

from datetime import datetime
from typing import Final

from django.utils.translation import gettext_noop

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.base.redis_connection import connect_to_redis
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.rows import ColumnType, ExportColumn
from tenants.compliance.exports.sql_source import WITHIN, SqlRows
from tenants.models.rollup import SERVICE_KEYS_USER_ID
from tenants.usage.ingestion.redis_stream import UsageStream
from tenants.usage.reports.counters import COUNTER_NAMES
from tenants.usage.rollups.operations import MAX_RECORD_DELAY, find_complete_until


def _make_columns(kind: ColumnType, *names: str) -> tuple[ExportColumn, ...]:
    return tuple(ExportColumn(name, kind) for name in names)


def _find_arrived_until(_tenant_id: TenantId, now: datetime) -> datetime:
    """Return the time before which the records of all requests are in the table.

    Records need up to MAX_RECORD_DELAY to reach Redis.
    """
    stream = UsageStream(connect_to_redis(), consumer="exports")
    return stream.find_arrived_until(now=now) - MAX_RECORD_DELAY


def _find_counted_until(tenant_id: TenantId, _now: datetime) -> datetime | None:
    """Return the time before which the rollups are complete; None: there are none yet."""
    with tenant_scope(tenant_id):
        return find_complete_until(tenant_id)


_RECORD_COLUMNS: Final = (
    *_make_columns(ColumnType.TIME, "occurred_at"),
    *_make_columns(ColumnType.ID, "request_id", "user_id", "key_id"),
    *_make_columns(ColumnType.TEXT, "protocol", "mode", "trigger", "language", "editor"),
    *_make_columns(
        ColumnType.TEXT, "tier", "pool", "model", "variant", "finish_reason", "error_code"
    ),
    *_make_columns(ColumnType.TEXT, "filter_reason"),
    *_make_columns(ColumnType.INTEGER, "prompt_tokens", "cached_tokens", "generated_tokens"),
    *_make_columns(ColumnType.INTEGER, "num_chars", "num_lines", "num_files", "num_snippets"),
    *_make_columns(ColumnType.NUMBER, "first_token_ms", "engine_ms", "total_ms"),
)

# One row for each request, with user IDs only. The export of members has their names.
USAGE_RECORDS: Final = Export(
    name="usage_records",
    version=1,
    title=gettext_noop("Usage by request"),
    permission=Permission.READ_USAGE,
    columns=_RECORD_COLUMNS,
    source=SqlRows(
        columns=tuple(column.name for column in _RECORD_COLUMNS),
        source=f"FROM tenants_usage_record {WITHIN.format(time='occurred_at')}",
        key=("occurred_at", "request_id"),
    ),
    complete_until=_find_arrived_until,
)

# The text columns by which the usage of a day and user is grouped.
_GROUP_COLUMNS: Final = ("editor", "language", "model", "variant")

# One row for each day, user, editor, language, model and variant. The dashboard shows these counts.
USAGE_DAYS: Final = Export(
    name="usage_days",
    version=1,
    title=gettext_noop("Usage by day and user"),
    permission=Permission.READ_USAGE,
    columns=(
        ExportColumn("day", ColumnType.DAY),
        ExportColumn("user_id", ColumnType.ID),
        *_make_columns(ColumnType.TEXT, *_GROUP_COLUMNS),
        *_make_columns(ColumnType.INTEGER, *COUNTER_NAMES),
    ),
    source=SqlRows(
        columns=(
            "(starts_at AT TIME ZONE 'UTC')::date",
            f"nullif(user_id, '{SERVICE_KEYS_USER_ID}')",  # empty: service keys
            *_GROUP_COLUMNS,
            *COUNTER_NAMES,
        ),
        source=f"FROM tenants_usage_day {WITHIN.format(time='starts_at')}",
        key=("starts_at", "user_id", *_GROUP_COLUMNS),
    ),
    complete_until=_find_counted_until,
)

EXPORTS: Final = (USAGE_RECORDS, USAGE_DAYS)

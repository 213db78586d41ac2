"""Export of audit entries as rows. The command `export_audit_log` writes the verifiable chain."""

from datetime import datetime
from typing import Final

from django.utils.translation import gettext_noop

from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import PagedRows, dump_json, make_row_reader
from tenants.compliance.exports.rows import ColumnType, ExportColumn, Row, RowQuery
from tenants.security.audit.queries import AuditEntryView, AuditFilter, fetch_entries

_COLUMNS_BEFORE_CHANGE: Final = (
    ExportColumn("sequence", ColumnType.INTEGER),
    ExportColumn("id", ColumnType.ID),
    ExportColumn("at", ColumnType.TIME),
    ExportColumn("actor_kind", ColumnType.TEXT),
    ExportColumn("actor_id", ColumnType.ID),
    ExportColumn("actor_email", ColumnType.TEXT),
    ExportColumn("actor_key", ColumnType.TEXT),
    ExportColumn("action", ColumnType.TEXT),
    ExportColumn("target", ColumnType.TEXT),
)
_CHANGE_COLUMNS: Final = (
    ExportColumn("before", ColumnType.TEXT),
    ExportColumn("after", ColumnType.TEXT),
)
_COLUMNS_AFTER_CHANGE: Final = (
    ExportColumn("address", ColumnType.TEXT),  # IP address
    ExportColumn("request_id", ColumnType.TEXT),
    ExportColumn("reason", ColumnType.TEXT),
    ExportColumn("previous_hash", ColumnType.TEXT),
    ExportColumn("hash", ColumnType.TEXT),
)
_read_columns_before_change = make_row_reader(*(column.name for column in _COLUMNS_BEFORE_CHANGE))
_read_columns_after_change = make_row_reader(*(column.name for column in _COLUMNS_AFTER_CHANGE))


def _fetch_page(query: RowQuery, limit: int, cursor: str | None) -> Page[AuditEntryView]:
    audit_filter = AuditFilter(since=query.period.start, until=_find_end(query))
    return fetch_entries(actor=query.actor, audit_filter=audit_filter, limit=limit, cursor=cursor)


def _find_end(query: RowQuery) -> datetime:
    """Return the end of the period, or `query.now` if that is earlier.

    Entries that are added while the export runs are left out.
    """
    return min(query.period.end, query.now)


def _to_row(entry: AuditEntryView) -> Row:
    change = (
        None if document is None else dump_json(document)
        for document in (entry.before, entry.after)
    )
    return (*_read_columns_before_change(entry), *change, *_read_columns_after_change(entry))


AUDIT: Final = Export(
    name="audit",
    version=1,
    title=gettext_noop("Audit entries"),
    permission=Permission.READ_AUDIT,
    columns=(*_COLUMNS_BEFORE_CHANGE, *_CHANGE_COLUMNS, *_COLUMNS_AFTER_CHANGE),
    source=PagedRows(fetch_page=_fetch_page, make_row=_to_row),
)

EXPORTS: Final = (AUDIT,)

"""Exports of retention rules, purges, holds and deletion certificates."""

import json
from typing import Any, Final

from django.utils.translation import gettext_noop

from tenants.base.permissions import Permission
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import (
    BY_CREATION,
    PagedRows,
    UnpagedRows,
    make_row_reader,
)
from tenants.compliance.exports.rows import ColumnType, ExportColumn, Row, RowQuery
from tenants.privacy.retention.queries import (
    CertificateView,
    DataClassReport,
    list_certificates,
    list_data_class_reports,
    list_holds,
    list_runs,
)

_CLASS_COLUMNS: Final = (
    ExportColumn("data_class", ColumnType.TEXT),
    ExportColumn("title", ColumnType.TEXT),
    ExportColumn("purpose", ColumnType.TEXT),
    ExportColumn("legal_basis", ColumnType.TEXT),
    ExportColumn("surface", ColumnType.TEXT),
    ExportColumn("days", ColumnType.INTEGER),
    ExportColumn("rule_version", ColumnType.INTEGER),  # empty: the tenant has not set a rule yet
    ExportColumn("author_email", ColumnType.TEXT),
    ExportColumn("reason", ColumnType.TEXT),
    # The stored records, and the time of the oldest one. Both are empty if a purge does not count
    # this class; `oldest_at` is also empty if there are no records.
    ExportColumn("records", ColumnType.INTEGER),
    ExportColumn("oldest_at", ColumnType.TIME),
    ExportColumn("due", ColumnType.INTEGER),  # the next purge deletes them
    # Old enough to delete, but on hold, or after a kept record of a chain.
    ExportColumn("held", ColumnType.INTEGER),
    ExportColumn("overdue", ColumnType.INTEGER),  # should have been deleted by now
)


def _read_class_rows(query: RowQuery) -> list[Row]:
    return [
        _to_class_row(report)
        for report in list_data_class_reports(actor=query.actor, now=query.now)
    ]


def _to_class_row(class_report: DataClassReport) -> Row:
    terms, rule, count = class_report.terms, class_report.rule, class_report.count
    description = (terms.title, terms.purpose, terms.legal_basis, terms.surface)
    rule_cells = (rule.days, rule.version, rule.author_email, rule.reason)
    records, oldest_at, num_due, num_held = None, None, 0, 0
    if count is not None:
        records, oldest_at, num_due, num_held = (
            count.records,
            count.oldest_at,
            count.due,
            count.held,
        )
    counts = (records, oldest_at, num_due, num_held)
    return (class_report.data_class.value, *description, *rule_cells, *counts, class_report.overdue)


RETENTION: Final = Export(
    name="retention",
    version=1,
    title=gettext_noop("Data classes and their retention periods"),
    permission=Permission.READ_RETENTION,
    columns=_CLASS_COLUMNS,
    source=UnpagedRows(_read_class_rows),
    is_of_period=False,
)

_RUN_COLUMNS: Final = (
    ExportColumn("id", ColumnType.ID),
    ExportColumn("data_class", ColumnType.TEXT),
    ExportColumn("days", ColumnType.INTEGER),
    ExportColumn("rule_version", ColumnType.INTEGER),
    ExportColumn("cutoff", ColumnType.TIME),
    # Numbers of records at the beginning, added and deleted since, at the end, and on hold.
    ExportColumn("opening", ColumnType.INTEGER),
    ExportColumn("created", ColumnType.INTEGER),
    ExportColumn("deleted", ColumnType.INTEGER),
    ExportColumn("closing", ColumnType.INTEGER),
    ExportColumn("held", ColumnType.INTEGER),
    ExportColumn("began_at", ColumnType.TIME),
    ExportColumn("finished_at", ColumnType.TIME),
)
PURGES: Final = Export(
    name="purges",
    version=1,
    title=gettext_noop("Purges: opening + created - deleted = closing"),
    permission=Permission.READ_RETENTION,
    columns=_RUN_COLUMNS,
    source=PagedRows(
        fetch_page=lambda query, limit, cursor: list_runs(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        make_row=make_row_reader(*(column.name for column in _RUN_COLUMNS)),
        get_time=lambda run: run.began_at,
    ),
)

_HOLD_COLUMNS: Final = (
    ExportColumn("id", ColumnType.ID),
    ExportColumn("name", ColumnType.TEXT),
    ExportColumn("user_id", ColumnType.ID),
    ExportColumn("since", ColumnType.TIME),
    ExportColumn("until", ColumnType.TIME),
    ExportColumn("reason", ColumnType.TEXT),
    ExportColumn("created_at", ColumnType.TIME),
    ExportColumn("released_at", ColumnType.TIME),
)
LEGAL_HOLDS: Final = Export(
    name="legal_holds",
    version=1,
    title=gettext_noop("Legal holds, active and released"),
    permission=Permission.READ_RETENTION,
    columns=_HOLD_COLUMNS,
    source=PagedRows(
        fetch_page=lambda query, limit, cursor: list_holds(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        make_row=make_row_reader(*(column.name for column in _HOLD_COLUMNS)),
    ),
    is_of_period=False,
)


def _to_certificate_row(certificate: CertificateView) -> Row:
    """Return the row. The last cell is the signed document, which `verify_certificate` reads."""
    document: dict[str, Any] = json.loads(certificate.document)
    facts = (document.get("data_class"), document.get("method"), document.get("reason"))
    return (
        certificate.id,
        certificate.number,
        certificate.created_at,
        *facts,
        certificate.document,
    )


CERTIFICATES: Final = Export(
    name="deletion_certificates",
    version=1,
    title=gettext_noop("Deletion certificates"),
    permission=Permission.READ_RETENTION,
    columns=(
        ExportColumn("id", ColumnType.ID),
        ExportColumn("number", ColumnType.INTEGER),
        ExportColumn("created_at", ColumnType.TIME),
        ExportColumn("data_class", ColumnType.TEXT),
        ExportColumn("method", ColumnType.TEXT),
        ExportColumn("reason", ColumnType.TEXT),
        ExportColumn("document", ColumnType.TEXT),
    ),
    source=PagedRows(
        fetch_page=lambda query, limit, cursor: list_certificates(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        make_row=_to_certificate_row,
        get_time=BY_CREATION,
    ),
)

EXPORTS: Final = (RETENTION, PURGES, LEGAL_HOLDS, CERTIFICATES)

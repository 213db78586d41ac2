"""Export of invoices and credit notes."""

from datetime import UTC, datetime, time
from typing import Final

from django.utils.translation import gettext_noop

from tenants.base.permissions import Permission
from tenants.billing.invoices.queries import InvoiceRow, read_page_of_invoices
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import PagedRows, make_row_reader
from tenants.compliance.exports.rows import ColumnType, ExportColumn

_INVOICE_COLUMNS: Final = (
    ExportColumn("number", ColumnType.INTEGER),
    ExportColumn("name", ColumnType.TEXT),
    ExportColumn("kind", ColumnType.TEXT),
    ExportColumn("month", ColumnType.DAY),
    ExportColumn("corrects", ColumnType.INTEGER),
    ExportColumn("currency", ColumnType.TEXT),
    ExportColumn("total_micros", ColumnType.INTEGER),
    ExportColumn("issued_on", ColumnType.DAY),
    ExportColumn("due_on", ColumnType.DAY),
    ExportColumn("sha256", ColumnType.TEXT),
)


def _get_issue_time(row: InvoiceRow) -> datetime:
    return datetime.combine(row.issued_on, time(), UTC)


INVOICES: Final = Export(
    name="invoices",
    version=1,
    title=gettext_noop("Invoices and credit notes, by issue date"),
    permission=Permission.READ_BILLING,
    columns=_INVOICE_COLUMNS,
    source=PagedRows(
        fetch_page=lambda query, limit, cursor: read_page_of_invoices(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        make_row=make_row_reader(*(column.name for column in _INVOICE_COLUMNS)),
        get_time=_get_issue_time,
    ),
)

EXPORTS: Final = (INVOICES,)

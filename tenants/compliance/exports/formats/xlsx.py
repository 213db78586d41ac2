"""Rows as a workbook with one sheet: the same values as in CSV.

Rows go to a file of the library's own in a private folder, so memory does not grow with them. A
sheet has 1,048,576 rows, a cell 32,767 characters: what does not fit is refused, never cut. Times
are text, as a workbook knows no time zone; numbers of more than 15 digits, which it would round,
are text as well.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import IO, Any, Final

from tenants.base.errors import InvalidValue
from tenants.compliance.exports.digesting_writer import DigestingWriter, WriteDigest
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.formats.cells import escape_formula
from tenants.compliance.exports.formats.temp_dir import scratch_folder
from tenants.compliance.exports.rows import Row, Value

MAX_ROWS: Final = 1_048_576 - 1  # below the names of the columns
MAX_CHARS: Final = 32_767
_EXACT_BELOW: Final = 10**15
# The same rows are the same bytes.
_MADE_AT: Final = datetime(2000, 1, 1)  # noqa: DTZ001  # as the library takes it
_MAX_NAME_CHARS: Final = 31  # of a sheet


def write_xlsx(export: Export, batches: Iterable[Sequence[Row]], out: IO[bytes]) -> WriteDigest:
    """Raises OSError, and Invalid for what does not fit into a sheet."""
    # Imported here: a fifth of a second, for those who want it.
    from xlsxwriter import Workbook

    written = WriteDigest()
    with scratch_folder() as folder:
        book = Workbook(
            DigestingWriter(out, written), {"constant_memory": True, "tmpdir": str(folder)}
        )
        book.set_properties({"title": export.title, "created": _MADE_AT})
        book.use_zip64()
        sheet = book.add_worksheet(export.name[:_MAX_NAME_CHARS])
        try:
            _fill(book, sheet, export, batches, written)
        except BaseException:
            sheet._opt_close()  # else the library closes its file with the book, which it writes
            raise
        book.close()
    return written


def _fill(
    book: Any, sheet: Any, export: Export, batches: Iterable[Sequence[Row]], written: WriteDigest
) -> None:
    _write_header(book, sheet, export)
    for rows in batches:
        require_rows(written.rows + len(rows))
        for number, row in enumerate(rows, start=written.rows + 1):
            _write_row(sheet, number, export, row)
        written.rows += len(rows)


def require_rows(num_rows: int) -> None:
    """Raises Invalid."""
    if num_rows > MAX_ROWS:
        raise InvalidValue(
            "format",
            "An XLSX sheet has at most {most:,} rows. Choose CSV, NDJSON or Parquet, or "
            "a shorter period.",
            most=MAX_ROWS,
        )


def _write_header(book: Any, sheet: Any, export: Export) -> None:
    bold = book.add_format({"bold": True})
    for number, column in enumerate(export.columns):
        sheet.write_string(0, number, column.name, bold)
    sheet.freeze_panes(1, 0)


def _write_row(sheet: Any, number: int, export: Export, row: Row) -> None:
    for place, (column, value) in enumerate(zip(export.columns, row, strict=True)):
        _write_cell(sheet, number, place, escape_formula(column.kind, value))


def _write_cell(sheet: Any, row: int, column: int, value: Value) -> None:
    """By its type, never by its looks: `write` would take a text for a formula or an address."""
    match value:
        case None:
            return
        case bool():
            sheet.write_boolean(row, column, value)
        case int() | float() if abs(value) < _EXACT_BELOW:
            sheet.write_number(row, column, value)
        case date():
            sheet.write_string(row, column, value.isoformat())
        case _:
            _write_text(sheet, row, column, str(value))


def _write_text(sheet: Any, row: int, column: int, text: str) -> None:
    if len(text) > MAX_CHARS:
        raise InvalidValue(
            "format",
            "A cell in XLSX holds at most {most:,} characters. Choose CSV, NDJSON or "
            "Parquet, or a shorter period.",
            most=MAX_CHARS,
        )
    sheet.write_string(row, column, text)

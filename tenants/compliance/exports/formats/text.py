"""Rows as CSV and NDJSON, and the table of all formats.

Every writer takes the same batches. Values are the same in all formats, with one exception: CSV and
XLSX mark text that a spreadsheet would compute (cells.py).
"""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import IO, Final

import msgspec

from tenants.compliance.exports.digesting_writer import WriteDigest
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.formats.cells import escape_csv_formulas, format_time
from tenants.compliance.exports.formats.parquet import write_parquet
from tenants.compliance.exports.formats.xlsx import write_xlsx
from tenants.compliance.exports.rows import ExportColumn, Row, Value

_BOOLEANS: Final = {True: "true", False: "false"}  # in CSV


def write_csv(export: Export, batches: Iterable[Sequence[Row]], out: IO[bytes]) -> WriteDigest:
    """Write CSV (RFC 4180, UTF-8, with a header). Raises OSError."""
    digest = WriteDigest()
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([column.name for column in export.columns])
    for rows in batches:
        for row in rows:
            writer.writerow(_convert_row(export.columns, row))
        digest.rows += len(rows)
        out.write(digest.update(_drain_text(text)))
    out.write(digest.update(_drain_text(text)))  # the header, if there was no batch
    return digest


def write_ndjson(export: Export, batches: Iterable[Sequence[Row]], out: IO[bytes]) -> WriteDigest:
    """Write one JSON object a line. Raises OSError."""
    digest, encode = WriteDigest(), msgspec.json.Encoder().encode_lines
    for rows in batches:
        out.write(digest.update(encode([_to_json_object(export.columns, row) for row in rows])))
        digest.rows += len(rows)
    return digest


FORMATS: Final = MappingProxyType(
    {"csv": write_csv, "ndjson": write_ndjson, "parquet": write_parquet, "xlsx": write_xlsx}
)


def _drain_text(text: io.StringIO) -> bytes:
    """Return the text in UTF-8, and empty the buffer."""
    data = text.getvalue().encode()
    text.seek(0)
    text.truncate()
    return data


def _convert_row(columns: Sequence[ExportColumn], row: Row) -> list[Value]:
    return [_convert_cell(column, value) for column, value in zip(columns, row, strict=True)]


def _convert_cell(column: ExportColumn, value: Value) -> Value:
    return _BOOLEANS[value] if isinstance(value, bool) else escape_csv_formulas(column.kind, value)


def _to_json_object(columns: Sequence[ExportColumn], row: Row) -> dict[str, Value]:
    return {
        column.name: format_time(value) if isinstance(value, datetime) else value
        for column, value in zip(columns, row, strict=True)
    }

"""Rows as an XLSX workbook with one sheet.

The library buffers rows in a file in a private folder, so that memory use is constant. A sheet has
at most 1,048,576 rows, and a cell at most 32,767 characters. Larger data is rejected, never
truncated. Dates and times are text, because workbooks have no time zones. Numbers of 10^15 and
above are text, because a workbook would round them.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import IO, Any, Final

from tenants.base.errors import InvalidValue
from tenants.compliance.exports.digesting_writer import DigestingWriter, WriteDigest
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.formats.cells import escape_formula
from tenants.compliance.exports.rows import Row, Value

_PREFIX: Final = "caret-export-"  # of folder names
_LOCK: Final = "lock"  # a file in the folder


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a folder that only this system user can read, and remove it at the end.

    Folders that killed processes have left are removed first. Raises OSError.
    """
    remove_abandoned_folders()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder


def remove_abandoned_folders() -> None:
    """Remove this system user's folders whose processes were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if folder.is_dir() and folder.stat().st_uid == os.getuid() and _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Return whether no process holds the folder's lock.

    A folder without a lock file counts as new, so its process may be alive.
    """
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return False
    return True


MAX_ROWS: Final = 1_048_576 - 1  # below the header
MAX_CHARS: Final = 32_767
_EXACT_BELOW: Final = 10**15  # a workbook keeps 15 digits
# A fixed time, so that equal rows give equal bytes.
_MADE_AT: Final = datetime(2000, 1, 1)  # noqa: DTZ001  # the library expects a naive time
_MAX_NAME_CHARS: Final = 31  # of a sheet's name


def write_xlsx(export: Export, batches: Iterable[Sequence[Row]], out: IO[bytes]) -> WriteDigest:
    """Write XLSX. Raises OSError, and InvalidValue if the data does not fit into a sheet."""
    # Imported here: the import takes a fifth of a second.
    from xlsxwriter import Workbook

    digest = WriteDigest()
    with scratch_folder() as folder:
        book = Workbook(
            DigestingWriter(out, digest), {"constant_memory": True, "tmpdir": str(folder)}
        )
        book.set_properties({"title": export.title, "created": _MADE_AT})
        book.use_zip64()
        sheet = book.add_worksheet(export.name[:_MAX_NAME_CHARS])
        try:
            _fill_sheet(book, sheet, export, batches, digest)
        except BaseException:
            # The library closes its buffer file only when it writes the workbook. That does not
            # happen after an error.
            sheet._opt_close()
            raise
        book.close()
    return digest


def _fill_sheet(
    book: Any, sheet: Any, export: Export, batches: Iterable[Sequence[Row]], digest: WriteDigest
) -> None:
    _write_header(book, sheet, export)
    for rows in batches:
        require_row_limit(digest.rows + len(rows))
        for number, row in enumerate(rows, start=digest.rows + 1):
            _write_row(sheet, number, export, row)
        digest.rows += len(rows)


def require_row_limit(num_rows: int) -> None:
    """Check that the rows fit into a sheet. Raises InvalidValue."""
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
    for column_number, (column, value) in enumerate(zip(export.columns, row, strict=True)):
        _write_cell(sheet, number, column_number, escape_formula(column.kind, value))


def _write_cell(sheet: Any, row: int, column: int, value: Value) -> None:
    """Write a cell by its type. The library's `write` turns some texts into formulas or links."""
    match value:
        case None:
            return
        case bool():  # before int, because a bool is also an int
            sheet.write_boolean(row, column, value)
        case int() | float() if abs(value) < _EXACT_BELOW:
            sheet.write_number(row, column, value)
        case date():  # a day: escape_formula has already turned times into text
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

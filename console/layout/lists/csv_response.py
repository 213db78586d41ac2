"""Lists as CSV files, with the rows of all pages. A page and its file use the same query.

If the file does not contain all rows, a line at its end says so. Invalid filters are an error. A
page can show a message beside unfiltered rows, but a file cannot.
"""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Final, Generic, TypeVar

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext

from console.downloads.file_response import file_response
from tenants.base.pagination import MAX_PAGE, Page
from tenants.compliance.exports.formats.cells import escape_csv_formulas
from tenants.compliance.exports.rows import ColumnType, Value

MAX_ROWS: Final = 10_000  # a few megabytes; longer lists need an export
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class CsvRows(Generic[_Row]):
    rows: list[_Row]
    is_truncated: bool  # the list has more rows
    # The last page that was read. A subclass of Page may contain values of the whole list, which
    # notes can use.
    last_page: Page[_Row]


def csv_response(
    name: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Value]],
    *,
    notes: Sequence[str],
) -> HttpResponse:
    """Return the rows as a CSV attachment. Spreadsheets interpret no cell of a row as a formula.

    `name` is the file name without its extension. Each of `notes` becomes a line after the rows.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    for row in (*rows, *([note] for note in notes)):
        writer.writerow(map(_format_cell, row))
    return file_response(
        text.getvalue(), name=f"{name}.csv", content_type="text/csv; charset=utf-8"
    )


def format_csv_error(*form_list: forms.Form) -> HttpResponse:
    """Return a text with status 400: the errors of the query parameters, one parameter a line."""
    errors = [(name, messages) for form in form_list for name, messages in form.errors.items()]
    lines = [f"{name}: {' '.join(map(str, messages))}\n" for name, messages in errors]
    return HttpResponse("".join(lines), status=400, content_type="text/plain; charset=utf-8")


def collect_rows(find_page: Callable[[str | None], Page[_Row]]) -> CsvRows[_Row]:
    """Return the rows of all pages, at most MAX_ROWS.

    `find_page` returns the page at a cursor (None: the first page) with at most MAX_PAGE rows, or
    all rows up to MAX_ROWS as one page.
    """
    page = find_page(None)
    rows = list(page.rows)
    for _ in range(MAX_ROWS // MAX_PAGE - 1):  # the first page is already read
        if page.next_cursor is None or len(rows) >= MAX_ROWS:
            break
        page = find_page(page.next_cursor)
        rows += page.rows
    return CsvRows(rows, is_truncated=page.next_cursor is not None, last_page=page)


def notes_of(rows: CsvRows[_Row]) -> list[str]:
    """Return a note if the rows are truncated, otherwise an empty list."""
    if not rows.is_truncated:
        return []
    text = gettext(
        "Truncated: a file has at most %(num)s rows. Narrow your filters, or create an export."
    )
    return [text % {"num": MAX_ROWS}]


def _format_cell(value: Value) -> Value:
    """Return the value as exports write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return escape_csv_formulas(ColumnType.TEXT, value)

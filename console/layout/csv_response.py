"""A list as a file of comma-separated values: what the page shows, by the same query.

A file that does not hold all of it says so in its last lines. A question that cannot be understood
is refused: a page shows what is wrong beside what it shows instead, a file could not.
"""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Final, Generic, TypeVar

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext

from tenants.base.pagination import MAX_PAGE, Page
from tenants.compliance.exports.formats.cells import escape_formula
from tenants.compliance.exports.rows import ColumnType, Value

MAX_ROWS: Final = 10_000  # some megabytes; beyond that the exports are for it
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class CsvRows(Generic[_Row]):
    rows: list[_Row]
    is_cut: bool  # there are more


def csv_response(
    name: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Value]],
    *,
    notes: Sequence[str],
) -> HttpResponse:
    """`name`: the file's, without its ending. Nothing in it is a formula to a spreadsheet.
    `notes`: what the page says beside its rows, where they are cut; a line each."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    for row in (*rows, *([note] for note in notes)):
        writer.writerow(map(_spelt, row))
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def csv_error(*asked: forms.Form) -> HttpResponse:
    """What is wrong with the address, by parameter."""
    wrong = [(name, said) for form in asked for name, said in form.errors.items()]
    lines = [f"{name}: {' '.join(map(str, said))}\n" for name, said in wrong]
    return HttpResponse("".join(lines), status=400, content_type="text/plain; charset=utf-8")


def collect_rows(page_after: Callable[[str | None], Page[_Row]]) -> CsvRows[_Row]:
    """Page by page, MAX_ROWS at most."""
    rows: list[_Row] = []
    cursor: str | None = None
    for _ in range(MAX_ROWS // MAX_PAGE):
        page = page_after(cursor)
        rows += page.rows
        cursor = page.next_cursor
        if cursor is None:
            break
    return CsvRows(rows, is_cut=cursor is not None)


def notes_of(listed: CsvRows[_Row]) -> list[str]:
    if not listed.is_cut:
        return []
    said = gettext(
        "Truncated: a file has at most %(num)s rows. Narrow your filters, or create an export."
    )
    return [said % {"num": MAX_ROWS}]


def _spelt(value: Value) -> Value:
    """As in exports."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return escape_formula(ColumnType.TEXT, value)

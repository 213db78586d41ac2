"""A list as a file of comma-separated values: what the page shows, by the same query."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import Final, TypeVar

from django.http import HttpResponse

from tenants.exports.cells import guarded
from tenants.exports.rows import Kind, Value
from tenants.paging import MAX_PAGE, Page

MAX_ROWS: Final = 10_000  # beyond that the exports are for it
_Row = TypeVar("_Row")


def csv_answer(name: str, header: Sequence[str], rows: Iterable[Sequence[Value]]) -> HttpResponse:
    """`name`: the file's, without its ending. Nothing in it is a formula to a spreadsheet."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(map(_spelt, row))
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def all_rows(page_after: Callable[[str | None], Page[_Row]]) -> Iterator[_Row]:
    """Page by page, MAX_ROWS at most."""
    cursor: str | None = None
    for _ in range(MAX_ROWS // MAX_PAGE):
        page = page_after(cursor)
        yield from page.rows
        cursor = page.next_cursor
        if cursor is None:
            return


def _spelt(value: Value) -> Value:
    """As in exports."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return guarded(Kind.TEXT, value)

"""A table as it is shown, as a file that spreadsheets open without computing anything."""

import csv
import io
from collections.abc import Iterable, Sequence

from django.http import HttpResponse

from tenants.exports.cells import guarded
from tenants.exports.rows import Kind, Value


def csv_file(name: str, head: Sequence[str], rows: Iterable[Sequence[Value]]) -> HttpResponse:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    for row in rows:
        writer.writerow([guarded(Kind.TEXT, value) for value in row])
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response

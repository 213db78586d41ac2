"""Values in CSV, NDJSON and XLSX files.

time       2026-11-20T12:30:00.000000Z, always with microseconds, so that texts sort by time
Boolean    CSV and NDJSON: true, false; XLSX: a Boolean cell
empty      CSV and XLSX: an empty cell; NDJSON: null
"""

import re
from datetime import UTC, datetime
from typing import Final

from tenants.compliance.exports.rows import ColumnType, Value

# Characters that begin a formula in a spreadsheet, or that a spreadsheet skips before a formula,
# also in full width. A leading ' marks the cell as text. Source: OWASP, CSV injection.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Group 1: a character at which a spreadsheet may split a cell (";" is the list separator in some
# countries, a tab, a line end), with spaces, quotes and further separators after it. Group 2: the
# next character, if it begins a formula.
_AFTER_SEPARATOR: Final = re.compile(r'([;\t\r\n][\s;"]*)([=+\-@＝＋－＠])?')


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def escape_formula(kind: ColumnType, value: Value) -> Value:
    """Return the value in a form that a spreadsheet shows but never computes. Times become text.

    `kind` is the type of the value's column.
    """
    if isinstance(value, str) and kind is ColumnType.TEXT and value.startswith(_FORMULA):
        return f"'{value}"
    return format_time(value) if isinstance(value, datetime) else value


def escape_csv_formulas(kind: ColumnType, value: Value) -> Value:
    """Escape formulas for a CSV file, also for spreadsheets that split text at other separators.

    Quotes around the cell do not prevent a split: a quote counts only at a cell's beginning.
    """
    escaped = escape_formula(kind, value)
    if not (isinstance(value, str) and isinstance(escaped, str) and kind is ColumnType.TEXT):
        return escaped
    return _AFTER_SEPARATOR.sub(lambda match: _mark_as_text(match[1], match[2]), escaped)


def _mark_as_text(separators: str, formula_start: str | None) -> str:
    return f"{separators}'{formula_start}" if formula_start else separators

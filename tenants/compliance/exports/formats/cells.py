"""Values in text formats.

time       2026-11-20T12:30:00.000000Z, always with six digits, so that texts sort by time
truth      true, false
empty      CSV and XLSX: an empty cell; NDJSON: null
"""

import re
from datetime import UTC, datetime
from typing import Final

from tenants.compliance.exports.rows import ColumnType, Value

# Characters at a cell's beginning that a spreadsheet takes for a formula or skips before one, with
# full-width forms. A leading ' marks the cell as text. Source: OWASP, CSV injection.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# A list separator of some countries (German: ";"), a tab or a line end, what follows it up to the
# next visible character, and that character if it begins a formula.
_AFTER_SEPARATOR: Final = re.compile(r'([;\t\r\n][\s;"]*)([=+\-@＝＋－＠])?')


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def escape_formula(kind: ColumnType, value: Value) -> Value:
    """Return a value that a spreadsheet shows but never computes, with times as text."""
    if isinstance(value, str) and kind is ColumnType.TEXT and value.startswith(_FORMULA):
        return f"'{value}"
    return format_time(value) if isinstance(value, datetime) else value


def escape_csv_formulas(kind: ColumnType, value: Value) -> Value:
    """Do the same for a CSV file, also if a spreadsheet splits the text at another separator.

    Quotes around the cell do not prevent that: a quote counts only at a cell's beginning.
    """
    escaped = escape_formula(kind, value)
    if not (isinstance(value, str) and isinstance(escaped, str) and kind is ColumnType.TEXT):
        return escaped
    return _AFTER_SEPARATOR.sub(lambda match: _mark_as_text(match[1], match[2]), escaped)


def _mark_as_text(separators: str, formula_start: str | None) -> str:
    return f"{separators}'{formula_start}" if formula_start else separators

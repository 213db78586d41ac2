"""What a value is in formats of text: the same in all of them.

time       2026-11-20T12:30:00.000000Z, always with six digits, so that texts sort as times do
truth      true, false
empty      CSV and XLSX: nothing in the cell; NDJSON: null
"""

from datetime import UTC, datetime
from typing import Final

from tenants.compliance.exports.rows import ColumnType, Value

# What a spreadsheet takes for a formula, or skips before one, when a cell begins with it, full
# width included; a leading ' says that it is text. Source: OWASP, CSV injection.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def escape_formula(kind: ColumnType, value: Value) -> Value:
    """For who may open it in a spreadsheet: times spelt, and nothing that would be computed."""
    if isinstance(value, str) and kind is ColumnType.TEXT and value.startswith(_FORMULA):
        return f"'{value}"
    return format_time(value) if isinstance(value, datetime) else value

"""Values in text formats, the same in all of them.

time       2026-11-20T12:30:00.000000Z, always with six digits, so that texts sort by time
truth      true, false
empty      CSV and XLSX: an empty cell; NDJSON: null
"""

from datetime import UTC, datetime
from typing import Final

from tenants.compliance.exports.rows import ColumnType, Value

# Characters at a cell's beginning that a spreadsheet takes for a formula or skips before one, with
# full-width forms. A leading ' marks the cell as text. Source: OWASP, CSV injection.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def escape_formula(kind: ColumnType, value: Value) -> Value:
    """Return a value that a spreadsheet shows but never computes, with times as text."""
    if isinstance(value, str) and kind is ColumnType.TEXT and value.startswith(_FORMULA):
        return f"'{value}"
    return format_time(value) if isinstance(value, datetime) else value

"""Bounds for the times and dates that callers send, checked before they are stored.

Postgres stores times that Python cannot read back. For example, a time with an offset on the first
or last day of Python's calendar can be outside of this calendar once converted to UTC. A row with
such a time could never be loaded. Arithmetic near the calendar's limits fails, too.
"""

from datetime import UTC, date, datetime
from typing import Final

from tenants.base.errors import InvalidValue

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2199
_FIRST: Final = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=UTC)


def validate_datetime(field: str, moment: datetime | None) -> None:
    """Check that the time, if any, is in the supported years. Raises InvalidValue."""
    if moment is not None and not _FIRST <= moment <= _LAST:
        raise _out_of_bounds(field)


def validate_date(field: str, day: date) -> None:
    """Check that the date is in the supported years. Raises InvalidValue."""
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise _out_of_bounds(field)


def _out_of_bounds(field: str) -> InvalidValue:
    return InvalidValue(
        field,
        "Enter a date or time in the years {first} to {last} (UTC).",
        first=FIRST_YEAR,
        last=LAST_YEAR,
    )

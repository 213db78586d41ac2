"""Bounds for the times and dates that callers send, checked before they are stored.

Postgres stores times that Python cannot read back, because Python's calendar has only the years 1
to 9999. For example, the last evening of the year 9999 in New York is in the year 10000 in UTC. A
row with such a time could never be read. Calculations with times near these limits also fail.
"""

from datetime import UTC, date, datetime
from typing import Final

from tenants.base.errors import InvalidValue

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2199
_FIRST_MOMENT: Final = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_END: Final = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)  # the first moment that is too late


def validate_datetime(field: str, moment: datetime | None) -> None:
    """Check that a time is in the supported years; None is valid. Raises InvalidValue."""
    if moment is not None and not _FIRST_MOMENT <= moment < _END:
        raise _out_of_bounds(field)


def validate_date(field: str, day: date) -> None:
    """Check that a date is in the supported years. Raises InvalidValue."""
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise _out_of_bounds(field)


def _out_of_bounds(field: str) -> InvalidValue:
    return InvalidValue(
        field,
        "Enter a date or time in the years {first} to {last} (UTC).",
        first=FIRST_YEAR,
        last=LAST_YEAR,
    )

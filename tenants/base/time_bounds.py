"""Moments and days as callers write them, bounded before they are stored or reckoned with.

Postgres keeps more than Python reads back: with an offset, the first and last days of Python's
calendar are outside it in UTC, and a row that holds such a moment can be loaded by nobody. Near the
ends of it an hour more or less is an error, too.
"""

from datetime import UTC, date, datetime
from typing import Final

from tenants.base.errors import InvalidValue

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2199
_FIRST: Final = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=UTC)


def validate_datetime(field: str, moment: datetime | None) -> None:
    """Nothing is no matter. Raises Invalid."""
    if moment is not None and not _FIRST <= moment <= _LAST:
        raise _out_of_bounds(field)


def validate_date(field: str, day: date) -> None:
    """Raises Invalid."""
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise _out_of_bounds(field)


def _out_of_bounds(field: str) -> InvalidValue:
    return InvalidValue(
        field,
        "Enter a time in the years {first} to {last} (UTC).",
        first=FIRST_YEAR,
        last=LAST_YEAR,
    )

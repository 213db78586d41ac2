"""Pages of long lists, newest first. A cursor contains the position of the last row of a page.

So new rows do not change where the next page begins. A cursor gives no access: the database's row
policies decide which rows a caller can read.

    rows = fetch_page_rows(Invoice.objects.filter(...), limit=limit, after=decode_cursor(cursor))
    get_position = lambda row: PagePosition(row.created_at, row.id)
    page = build_page(rows, limit=limit, get_position=get_position)
"""

import binascii
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from tenants.base.errors import InvalidValue

MAX_PAGE: Final = 200  # rows
_ID_BYTES: Final = 16
_TIME_BYTES: Final = 8  # microseconds since 1970
_Row = TypeVar("_Row")
_ModelRow = TypeVar("_ModelRow", bound=Model)


@dataclass(frozen=True, slots=True)
class PagePosition:
    """The time and the ID of a row: rows are sorted by both."""

    at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class Page(Generic[_Row]):
    rows: list[_Row]
    next_cursor: str | None  # None: this is the last page


def encode_cursor(position: PagePosition) -> str:
    since = position.at - datetime.fromtimestamp(0, UTC)
    # In integers, because a float would not be exact to the microsecond.
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    data = micros.to_bytes(_TIME_BYTES, signed=True) + position.id.bytes
    return urlsafe_b64encode(data).decode()


def decode_cursor(cursor: str | None) -> PagePosition | None:
    """Return the position in a cursor; None, which means the first page, if there is no cursor.

    Raises InvalidValue.
    """
    if cursor is None:
        return None
    try:
        data = b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        if len(data) != _TIME_BYTES + _ID_BYTES:
            raise ValueError
        micros = int.from_bytes(data[:_TIME_BYTES], signed=True)
        seconds, micros_of_second = divmod(micros, 1_000_000)
        at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros_of_second)
    except (ValueError, OverflowError, OSError, binascii.Error) as error:
        raise InvalidValue(
            "cursor", "The cursor is invalid. Use a cursor from a previous page."
        ) from error
    return PagePosition(at, UUID(bytes=data[_TIME_BYTES:]))


def fetch_page_rows(
    rows: QuerySet[_ModelRow],
    *,
    limit: int,
    after: PagePosition | None,
    time_field: str = "created_at",
) -> list[_ModelRow]:
    """Return up to `limit` + 1 rows after a position; None: from the start. One query.

    If there is an extra row, build_page knows that there is a next page.
    """
    assert 1 <= limit <= MAX_PAGE
    if after is not None:
        is_earlier = Q(**{f"{time_field}__lt": after.at})
        rows = rows.filter(is_earlier | Q(**{time_field: after.at, "id__lt": after.id}))
    return list(rows.order_by(f"-{time_field}", "-id")[: limit + 1])


def build_page(
    rows: Sequence[_Row], *, limit: int, get_position: Callable[[_Row], PagePosition]
) -> Page[_Row]:
    """Return the page of the rows that fetch_page_rows has returned for the same limit."""
    page_rows = list(rows[:limit])
    has_more = len(rows) > limit
    return Page(page_rows, encode_cursor(get_position(page_rows[-1])) if has_more else None)


def slice_page(rows: Sequence[_Row], *, limit: int, cursor: str | None) -> Page[_Row]:
    """Return a page of rows that are all in memory. Raises InvalidValue.

    The cursor is the number of rows before the page; None: the first page.
    """
    try:
        start = int(cursor or "0")
    except ValueError:
        start = -1  # invalid, so that the check below fails
    if not 0 <= start <= len(rows):
        raise InvalidValue("cursor", "The cursor is invalid. Use a cursor from a previous page.")
    end = start + limit
    return Page(list(rows[start:end]), str(end) if end < len(rows) else None)


def map_page(page: Page[Any], view: Callable[[Any], _Row]) -> Page[_Row]:
    """Return the page with `view` applied to each row."""
    return Page([view(row) for row in page.rows], page.next_cursor)

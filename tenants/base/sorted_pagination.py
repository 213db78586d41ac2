"""Pages of lists in an order that the user chooses: by a time or a text, ascending or descending.

`tenants.base.pagination` is for lists that are always newest first.

    order = SortOrder(Lower("name"))
    page = fetch_sorted_page(Team.objects.filter(...), order=order, limit=50, cursor=cursor)
"""

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import Combinable

from tenants.base.errors import InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.validation.text import is_storable

# A longer cursor is rejected undecoded. The longest valid cursor has 1,980 characters. It contains
# a name of 120 characters outside of Unicode's basic plane. JSON escapes each of them in
# 12 characters, and Base64 adds a third.
MAX_CURSOR_CHARS: Final = 2_000
_Row = TypeVar("_Row", bound=Model)


@dataclass(frozen=True, slots=True)
class SortOrder:
    key: Combinable | F  # the sort key; never null, because a cursor could not continue after null
    is_time: bool = False  # whether the sort key is a time; False: it is a text
    is_descending: bool = False


def fetch_sorted_page(
    items: QuerySet[_Row], *, order: SortOrder, limit: int, cursor: str | None
) -> Page[_Row]:
    """Return one page of sorted rows; rows with equal sort keys are sorted by id. One query.

    `cursor` is the `next_cursor` of the page before; None: the first page. Raises InvalidValue.
    """
    assert 1 <= limit <= MAX_PAGE
    rows = items.annotate(sort_key=order.key)
    comparison = "lt" if order.is_descending else "gt"
    if cursor:
        sort_key, row_id = _decode_cursor(cursor, order)
        is_after = Q(**{f"sort_key__{comparison}": sort_key})
        rows = rows.filter(is_after | Q(**{"sort_key": sort_key, f"id__{comparison}": row_id}))
    sign = "-" if order.is_descending else ""
    fetched_rows = list(rows.order_by(f"{sign}sort_key", f"{sign}id")[: limit + 1])
    page_rows = fetched_rows[:limit]
    return Page(page_rows, _encode_cursor(page_rows[-1]) if len(fetched_rows) > limit else None)


def _encode_cursor(row: Any) -> str:
    """Return the cursor of the page after this row, which has the annotation `sort_key`."""
    sort_key = row.sort_key.isoformat() if isinstance(row.sort_key, datetime) else row.sort_key
    return urlsafe_b64encode(json.dumps([sort_key, str(row.id)]).encode()).decode()


def _decode_cursor(cursor: str, order: SortOrder) -> tuple[str | datetime, UUID]:
    """Return sort key and id of the row before the page. Raises InvalidValue."""
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError
        sort_key, row_id = json.loads(urlsafe_b64decode(cursor.encode("ascii")))
        if not isinstance(sort_key, str) or not is_storable(sort_key):
            raise ValueError
        return (_parse_time(sort_key) if order.is_time else sort_key), UUID(row_id)
    except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise InvalidValue(
            "cursor", "The cursor is invalid. Use a cursor from a previous page."
        ) from error


def _parse_time(text: str) -> datetime:
    """Parse a time with an offset from UTC. Raises ValueError if it has none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment

"""Rows from the queries that lists in the API use, so that a list and its export agree.

The position after a batch is the cursor of the next page.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import msgspec

from tenants.base.pagination import MAX_PAGE, Page
from tenants.compliance.exports.rows import BATCH_ROWS, Row, RowBatch, RowQuery, Value

_GetTime = Callable[[Any], datetime]


@dataclass(frozen=True, slots=True)
class PagedRows:
    """Rows of a paged query, newest first."""

    fetch_page: Callable[[RowQuery, int, str | None], Page[Any]]  # by query, limit and cursor
    make_row: Callable[[Any], Row]  # makes an export's row from a row of a page
    # Returns the time of a row of a page. Only rows with a time in the period are exported. None:
    # all rows of the query are exported.
    get_time: _GetTime | None = None

    def read(self, query: RowQuery, *, after: str | None) -> RowBatch:
        rows: list[Row] = []
        while len(rows) < BATCH_ROWS:
            page = self.fetch_page(query, MAX_PAGE, after)
            rows += [self.make_row(row) for row in page.rows if self._is_in_period(query, row)]
            after = page.next_cursor
            if after is None:
                break
        return RowBatch(rows, after)

    def count(self, _query: RowQuery) -> int | None:
        return None  # unknown before reading

    def _is_in_period(self, query: RowQuery, row: Any) -> bool:
        if self.get_time is None:
            return True
        return query.period.start <= self.get_time(row) < query.period.end


@dataclass(frozen=True, slots=True)
class UnpagedRows:
    """All rows of a query that returns only a few rows."""

    fetch_rows: Callable[[RowQuery], Sequence[Row]]

    def read(self, query: RowQuery, *, after: str | None) -> RowBatch:
        assert after is None, "there is only one batch"
        return RowBatch(self.fetch_rows(query), None)

    def count(self, _query: RowQuery) -> int | None:
        return None  # unknown before reading


def make_row_reader(*names: str) -> Callable[[Any], Row]:
    """Return a function that makes a row from the fields of a view that have these names."""
    read_attributes = attrgetter(*names)
    return lambda view: tuple(to_cell_value(value) for value in read_attributes(view))


def to_cell_value(value: Any) -> Value:
    """Return the value of one cell: documents as JSON, other collections as sorted names."""
    match value:
        case Enum():  # first, because a StrEnum is also a str
            return str(value.value)
        case None | str() | bool() | int() | float() | datetime() | date() | UUID():
            return value
        case Mapping():
            return dump_json(value)
        case _:
            return ", ".join(sorted(str(to_cell_value(item)) for item in value))


def dump_json(document: Any) -> str:
    """Return JSON on one line with sorted keys."""
    return json.dumps(msgspec.to_builtins(document), ensure_ascii=False, sort_keys=True)


BY_CREATION: Final[_GetTime] = attrgetter("created_at")

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

_MadeAt = Callable[[Any], datetime]


@dataclass(frozen=True, slots=True)
class PagedRows:
    """Rows of a paged query, newest first."""

    page: Callable[[RowQuery, int, str | None], Page[Any]]  # reads a page, by limit and cursor
    row: Callable[[Any], Row]  # makes an export's row from a row of a page
    # Returns the time of a row. Only rows with a time in the period are exported. None: all rows of
    # the query are exported.
    made_at: _MadeAt | None = None

    def read(self, query: RowQuery, *, after: str | None) -> RowBatch:
        rows: list[Row] = []
        while len(rows) < BATCH_ROWS:
            page = self.page(query, MAX_PAGE, after)
            rows += [self.row(row) for row in page.rows if self._is_in_period(query, row)]
            after = page.next_cursor
            if after is None:
                break
        return RowBatch(rows, after)

    def count(self, _query: RowQuery) -> int | None:
        return None

    def _is_in_period(self, query: RowQuery, row: Any) -> bool:
        if self.made_at is None:
            return True
        return query.period.start <= self.made_at(row) < query.period.end


@dataclass(frozen=True, slots=True)
class UnpagedRows:
    """Rows of a query that returns only a few."""

    rows: Callable[[RowQuery], Sequence[Row]]  # reads all rows

    def read(self, query: RowQuery, *, after: str | None) -> RowBatch:
        assert after is None, "there is only one batch"
        return RowBatch(self.rows(query), None)

    def count(self, _query: RowQuery) -> int | None:
        return None


def make_row_reader(*names: str) -> Callable[[Any], Row]:
    """Return a function that makes a row from the fields of a view that have these names."""
    read_attributes = attrgetter(*names)
    return lambda view: tuple(to_cell_value(value) for value in read_attributes(view))


def to_cell_value(value: Any) -> Value:
    """Return the value of one cell: sets as sorted names, documents as JSON."""
    match value:
        case Enum():
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


BY_CREATION: Final[_MadeAt] = attrgetter("created_at")

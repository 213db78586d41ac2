"""Rows of one SQL query, read in batches in the order of a sort key. It suits millions of rows.

    SELECT columns FROM ... WHERE ... AND (key) > (position) ORDER BY key LIMIT n

An index covers the sort key, so a batch begins where the previous one ended, without reading its
rows again. No transaction is open between batches. An interrupted export continues from its last
position.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.exports.rows import BATCH_ROWS, RowBatch, RowQuery

# The beginning of every query's conditions; `time` is the column that the period filters.
WITHIN: Final = "WHERE tenant_id = %(tenant)s AND {time} >= %(start)s AND {time} < %(end)s"


@dataclass(frozen=True, slots=True)
class SqlRows:
    """An SQL query. Its parts are constants of the code, never user input."""

    columns: tuple[str, ...]  # SQL expressions
    source: str  # FROM and WHERE, with the parameters %(tenant)s, %(start)s and %(end)s
    key: tuple[str, ...]  # the sort key: SQL expressions, never null; unique within the tenant

    def read(self, query: RowQuery, *, after: str | None) -> RowBatch:
        parameters: dict[str, Any] = {
            "tenant": query.tenant_id,
            "start": query.period.start,
            "end": query.period.end,
            "batch": BATCH_ROWS,
            **_decode_position(after),
        }
        with tenant_scope(query.tenant_id), connection.cursor() as cursor:
            cursor.execute(self._build_query(is_first=after is None), parameters)
            sql_rows: list[tuple[Any, ...]] = cursor.fetchall()
        # The query appends the sort key, as text, to the columns. The last row's sort key is the
        # position after the batch.
        rows = [row[: len(self.columns)] for row in sql_rows]
        if len(sql_rows) < BATCH_ROWS:
            return RowBatch(rows, None)
        return RowBatch(rows, json.dumps(sql_rows[-1][len(self.columns) :]))

    def count(self, query: RowQuery) -> int | None:
        """Count the rows: about 50 ms for 250,000 rows."""
        parameters: dict[str, Any] = {
            "tenant": query.tenant_id,
            "start": query.period.start,
            "end": query.period.end,
        }
        with tenant_scope(query.tenant_id), connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) {self.source}", parameters)  # only constants
            return int(cursor.fetchone()[0])

    def _build_query(self, *, is_first: bool) -> str:
        key = ", ".join(self.key)
        key_columns = ", ".join(f"({part})::text AS position{n}" for n, part in enumerate(self.key))
        parameters = ", ".join(f"%(position{number})s" for number in range(len(self.key)))
        after_position = "" if is_first else f" AND ({key}) > ({parameters})"
        return (
            f"SELECT {', '.join(self.columns)}, {key_columns} {self.source}{after_position}"
            f" ORDER BY {key} LIMIT %(batch)s"
        )


def _decode_position(after: str | None) -> dict[str, str]:
    """Return the position's values as text. Postgres converts them to the types of the sort key."""
    values = [] if after is None else json.loads(after)
    return {f"position{number}": value for number, value in enumerate(values)}

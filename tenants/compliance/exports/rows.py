"""Columns, values and row sources of exports. Sources return rows in batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

from caret.foundation.ids import TenantId
from tenants.security.authorization.actor import Actor

BATCH_ROWS: Final = 5_000  # the usual size of a batch, except of the last one
Value = str | int | float | bool | datetime | date | UUID | None
Row = tuple[Value, ...]


class ColumnType(StrEnum):
    """The type of a column's values. A value of any column may also be None: an empty cell."""

    TEXT = "text"
    ID = "id"  # a UUID
    TIME = "time"  # UTC
    DAY = "day"  # UTC
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class ExportColumn:
    name: str
    kind: ColumnType


@dataclass(frozen=True, slots=True)
class Period:
    """A half-open period in UTC."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class RowQuery:
    """The rows that an export reads, and the actor who requested the export.

    The caller checks that the actor has the export's permission. Queries of a source check further
    permissions. Each role with the export's permission must have these, too, so that a source never
    raises Forbidden.
    """

    actor: Actor
    period: Period
    now: datetime  # the beginning of the export

    @property
    def tenant_id(self) -> TenantId:
        return self.actor.tenant_id


@dataclass(frozen=True, slots=True)
class RowBatch:
    rows: Sequence[Row]
    next: str | None  # the position after the last row; None: no more rows


class RowSource(Protocol):
    """A source of rows in a fixed order.

    Repeated reads return the same rows, unless rows were added or changed. A position only moves
    forward, so no row is returned twice.
    """

    def read(self, query: RowQuery, *, after: str | None) -> RowBatch:
        """Read a batch, in one or several transactions. No tenant scope may be open.

        `after` is the position of an earlier batch; None: the beginning.
        """
        ...

    def count(self, query: RowQuery) -> int | None:
        """Return the expected number of rows; None: unknown before reading."""
        ...

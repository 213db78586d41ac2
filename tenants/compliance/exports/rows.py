"""What exports are made of: columns, the values in them, and sources that give rows in batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

from caret.foundation.ids import TenantId
from tenants.security.authorization.actor import Actor

BATCH_ROWS: Final = 5_000
Value = str | int | float | bool | datetime | date | UUID | None
Row = tuple[Value, ...]


class ColumnType(StrEnum):
    """What a column holds; None beside it only where the column may be empty."""

    TEXT = "text"
    ID = "id"  # a UUID
    TIME = "time"  # UTC
    DAY = "day"  # UTC
    INTEGER = "integer"
    NUMBER = "number"
    TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class ExportColumn:
    name: str
    kind: ColumnType


@dataclass(frozen=True, slots=True)
class Period:
    """Half-open, UTC."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Whose rows, of when. Permissions are looked at before: sources ask none of their own that
    the export's does not imply."""

    actor: Actor
    period: Period
    now: datetime

    @property
    def tenant_id(self) -> TenantId:
        return self.actor.tenant_id


@dataclass(frozen=True, slots=True)
class RowBatch:
    rows: Sequence[Row]
    next: str | None  # the place after its last row; None: there are no more


class RowSource(Protocol):
    """Gives the same rows in the same order however often it is asked, but for what has changed
    meanwhile; a row is never given twice, as places only move on."""

    def read(self, asked: RowQuery, *, after: str | None) -> RowBatch:
        """Outside any scope; opens the tenant's for one transaction. `after`: a place that a batch
        has named; None: the beginning."""
        ...

    def count(self, asked: RowQuery) -> int | None:
        """How many rows there are about to be; None: not known before they are read."""
        ...
